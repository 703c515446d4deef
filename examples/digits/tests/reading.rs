use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::data::{Digits, Error, PIXELS};

/// A file of the test's own.
fn file(name: &str, bytes: &[u8]) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, bytes).unwrap();
    path
}

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

/// Six sound lines.
fn lines() -> Vec<String> {
    (0..6).map(|label| format!("{}{label}", format!("{},", label * 2).repeat(PIXELS))).collect()
}

/// The error of six lines of which the third is another.
fn error_of_third_line(name: &str, line: &str) -> (Error, String) {
    let mut lines = lines();
    lines[2] = line.to_owned();
    let error = Digits::read(&file(name, &gzip(&lines.join("\n")))).unwrap_err();
    let text = error.to_string();
    (error, text)
}

#[test]
fn pixels_are_scaled_to_one() {
    let digits = Digits::read(&file("sound.csv.gz", &gzip(&lines().join("\n")))).unwrap();
    assert_eq!(digits.labels, [0, 1, 2, 3, 4, 5]);
    assert_eq!(digits.images.len(), 6 * PIXELS);
    assert_eq!((digits.images[0], digits.images[4 * PIXELS]), (0.0, 0.5));
}

#[test]
fn a_missing_file_is_named_with_the_way_out() {
    let error = Digits::read(Path::new("nowhere/digits.csv.gz")).unwrap_err();
    assert!(matches!(error, Error::Open { .. }), "{error:?}");
    assert!(error.to_string().contains("nowhere/digits.csv.gz") && error.to_string().contains("--data"), "{error}");
}

#[test]
fn a_folder_is_not_a_file_of_digits() {
    let error = Digits::read(Path::new(env!("CARGO_TARGET_TMPDIR"))).unwrap_err();
    assert!(matches!(error, Error::Open { .. } | Error::Read { .. }), "{error:?}");
}

#[test]
fn a_file_cut_anywhere_is_an_error() {
    let whole = gzip(&lines().join("\n"));
    for length in 0..whole.len() {
        let error = Digits::read(&file("cut.csv.gz", &whole[..length])).unwrap_err();
        assert!(matches!(error, Error::Truncated { .. }), "cut at {length}: {error:?}");
    }
}

#[test]
fn a_flipped_byte_never_passes_for_other_digits() {
    let whole = gzip(&lines().join("\n"));
    let sound = Digits::read(&file("unflipped.csv.gz", &whole)).unwrap();
    for position in 0..whole.len() {
        let mut flipped = whole.clone();
        flipped[position] ^= 0x55;
        match Digits::read(&file("flipped.csv.gz", &flipped)) {
            // Parts of the header, such as the time, say nothing about the digits.
            Ok(digits) => assert_eq!(digits, sound, "byte {position}"),
            Err(Error::Corrupt { .. } | Error::Truncated { .. }) => {}
            Err(error) => panic!("byte {position}: {error}"),
        }
    }
}

#[test]
fn plain_text_is_read_as_it_is() {
    let text = lines().join("\n");
    let plain = Digits::read(&file("plain.csv", text.as_bytes())).unwrap();
    assert_eq!(plain, Digits::read(&file("packed.csv.gz", &gzip(&text))).unwrap());
    let wrong = Digits::read(&file("words.csv", b"five,six\n")).unwrap_err();
    assert!(matches!(wrong, Error::Columns { line: 1, found: 2, .. }), "{wrong:?}");
}

#[test]
fn what_is_neither_text_nor_gzip_is_corrupt() {
    let error = Digits::read(&file("noise.csv.gz", &[0x7f, 0xfe, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9])).unwrap_err();
    assert!(matches!(error, Error::Corrupt { .. }), "{error:?}");
}

#[test]
fn a_wrong_count_of_columns_names_the_line() {
    let (error, text) = error_of_third_line("columns.csv.gz", "1,2,3");
    assert!(matches!(error, Error::Columns { line: 3, found: 3, .. }), "{error:?}");
    assert!(text.ends_with("line 3: 3 columns; an image has 65, its pixels and its label"), "{text}");
}

#[test]
fn a_pixel_that_is_none_names_line_and_column() {
    for pixel in ["NaN", "inf", "-1", "16.5", "x", ""] {
        let line = format!("0,{pixel},{}3", "0,".repeat(PIXELS - 2));
        let (error, text) = error_of_third_line("pixel.csv.gz", &line);
        assert!(matches!(error, Error::Pixel { line: 3, column: 2, .. }), "{error:?}");
        let expected = format!("line 3, column 2: {pixel:?} is not a pixel; pixels are numbers from 0 to 16");
        assert!(text.ends_with(&expected), "{text}");
    }
}

#[test]
fn a_label_that_is_none_names_the_line() {
    for label in ["10", "-1", "2.5", "NaN", "seven"] {
        let (error, text) = error_of_third_line("label.csv.gz", &format!("{}{label}", "0,".repeat(PIXELS)));
        assert!(matches!(error, Error::Label { line: 3, .. }), "{error:?}");
        assert!(text.contains(&format!("{label:?} is not a label")), "{text}");
    }
}

#[test]
fn too_few_images_are_an_error() {
    for count in 0..5 {
        let error = Digits::read(&file("few.csv.gz", &gzip(&lines()[..count].join("\n")))).unwrap_err();
        assert!(matches!(error, Error::TooFew { found, .. } if found == count), "{error:?}");
    }
}
