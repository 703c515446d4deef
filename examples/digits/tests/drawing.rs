use crate::data::PIXELS;
use crate::draw::{Drawing, draw};

#[test]
fn images_stand_side_by_side_over_their_captions() {
    let mut corner = [0.0; PIXELS];
    corner[0] = 1.0;
    corner[63] = 0.5;
    let ink = [1.0; PIXELS];
    let drawn = draw(&[
        Drawing { image: &corner, label: 3, predicted: Some(3) },
        Drawing { image: &ink, label: 8, predicted: Some(3) },
        Drawing { image: &corner, label: 5, predicted: None },
    ]);
    let lines: Vec<&str> = drawn.lines().collect();
    let full = "█".repeat(16);
    assert_eq!(lines.len(), 9);
    assert_eq!(lines[0], format!("██{}   {full}   ██", " ".repeat(14)));
    assert_eq!(lines[7], format!("{}▒▒   {full}   {}▒▒", " ".repeat(14), " ".repeat(14)));
    assert_eq!(lines[8], "      3 ✓              3 ✗ is 8              5");
}

#[test]
fn no_pixel_is_out_of_range() {
    let mut image = [0.0; PIXELS];
    image[..4].copy_from_slice(&[f32::NAN, f32::INFINITY, -1.0, 9.0]);
    let drawn = draw(&[Drawing { image: &image, label: 0, predicted: None }]);
    assert_eq!(drawn.lines().next(), Some("  ██  ██"));
}
