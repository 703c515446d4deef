//! Digits in the terminal.

use crate::data::SIDE;

/// From paper to ink.
const SHADES: [&str; 5] = ["  ", "░░", "▒▒", "▓▓", "██"];
/// A pixel is two characters wide, for a character is twice as high as wide.
const WIDTH: usize = 2 * SIDE;
const GAP: &str = "   ";

/// An image with what is said of it.
pub struct Drawing<'a> {
    /// Pixels from 0 to 1, row by row.
    pub image: &'a [f32],
    /// What it is.
    pub label: u8,
    /// What it was taken for.
    pub predicted: Option<u8>,
}

impl Drawing<'_> {
    fn caption(&self) -> String {
        match self.predicted {
            None => format!("{}", self.label),
            Some(predicted) if predicted == self.label => format!("{predicted} ✓"),
            Some(predicted) => format!("{predicted} ✗ is {}", self.label),
        }
    }
}

/// The images side by side, their captions beneath.
pub fn draw(drawings: &[Drawing<'_>]) -> String {
    let mut lines: Vec<String> = (0..SIDE)
        .map(|row| {
            let rows = drawings.iter().map(|drawing| {
                let pixels = drawing.image.iter().skip(row * SIDE).take(SIDE);
                pixels.map(|pixel| shade(*pixel)).collect::<String>()
            });
            rows.collect::<Vec<_>>().join(GAP)
        })
        .collect();
    let captions = drawings.iter().map(|drawing| format!("{:^WIDTH$}", drawing.caption()));
    lines.push(captions.collect::<Vec<_>>().join(GAP));
    lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

fn shade(pixel: f32) -> &'static str {
    let last = SHADES.len() - 1;
    // A float becomes the nearest index in range, NaN becomes 0.
    SHADES[((pixel * last as f32).round() as usize).min(last)]
}
