//! Time against size, on logarithmic axes: a line's slope is its exponent.

use std::error::Error;
use std::path::Path;

use plotters::prelude::*;

/// The points of one growth.
pub struct Line {
    /// What grows.
    pub name: &'static str,
    /// Sizes and seconds.
    pub points: Vec<(f64, f64)>,
    /// Slope over all of them.
    pub exponent: f64,
}

const SIZE: (u32, u32) = (960, 600);

/// Draws the lines as SVG.
///
/// # Errors
/// When the file cannot be written.
pub fn draw(lines: &[Line], file: &Path) -> Result<(), Box<dyn Error>> {
    let points = || lines.iter().flat_map(|line| line.points.iter().copied());
    let bounds = |values: &mut dyn Iterator<Item = f64>| {
        let (least, most) = values.fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)));
        least / 1.5..most * 1.5
    };
    let (sizes, times) = (bounds(&mut points().map(|p| p.0)), bounds(&mut points().map(|p| p.1 * 1e3)));
    let root = SVGBackend::new(file, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&root)
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(64)
        .right_y_label_area_size(300)
        .build_cartesian_2d(sizes.log_scale(), times.log_scale())?;
    chart.configure_mesh().x_desc("n").y_desc("ms").light_line_style(TRANSPARENT).draw()?;
    let (right, top) = (SIZE.0 as i32 - 300, 24);
    for (number, line) in lines.iter().enumerate() {
        let color = HSLColor(number as f64 / lines.len() as f64, 0.75, 0.42);
        let points: Vec<(f64, f64)> = line.points.iter().map(|(n, seconds)| (*n, seconds * 1e3)).collect();
        chart.draw_series(LineSeries::new(points.clone(), color.stroke_width(2)))?;
        chart.draw_series(points.into_iter().map(|point| Circle::new(point, 3, color.filled())))?;
        let y = top + 20 * number as i32;
        root.draw(&PathElement::new(vec![(right, y + 7), (right + 18, y + 7)], color.stroke_width(3)))?;
        let text = format!("{}: n^{:.2}", line.name, line.exponent);
        root.draw(&Text::new(text, (right + 24, y), ("sans-serif", 14)))?;
    }
    root.present()?;
    Ok(())
}
