//! The handwritten digits: reading them, and holding some out for the test.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use csv::{ByteRecord, ReaderBuilder, Trim};
use flate2::read::GzDecoder;

/// Pixels of an image, row by row.
pub const PIXELS: usize = SIDE * SIDE;
/// Rows of an image, and columns.
pub const SIDE: usize = 8;
/// The labels are 0 to 9.
pub const CLASSES: u8 = 10;
/// What a full pixel is in the file.
const INK: f32 = 16.0;
/// One image in so many is held out.
const HELD_OUT: usize = 5;

/// Why the digits could not be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot open the digits at {path}: {source}; name another file with --data", path = .path.display())]
    Open { path: PathBuf, source: io::Error },
    #[error("cannot read {path}: {source}", path = .path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{path} ends too early: the file is truncated; copy it again", path = .path.display())]
    Truncated { path: PathBuf },
    #[error("{path} is neither text nor sound gzip ({source}): the file is corrupt; copy it again", path = .path.display())]
    Corrupt { path: PathBuf, source: io::Error },
    #[error(
        "{path}, line {line}: {found} columns; an image has {expected}, its pixels and its label",
        path = .path.display(), expected = PIXELS + 1
    )]
    Columns { path: PathBuf, line: u64, found: usize },
    #[error("{path}, line {line}, column {column}: {text:?} is not a pixel; pixels are numbers from 0 to {INK}", path = .path.display())]
    Pixel { path: PathBuf, line: u64, column: usize, text: String },
    #[error(
        "{path}, line {line}: {text:?} is not a label; labels are whole numbers from 0 to {last}",
        path = .path.display(), last = CLASSES - 1
    )]
    Label { path: PathBuf, line: u64, text: String },
    #[error("{path} holds {found} images; at least {HELD_OUT} are needed, to hold one out", path = .path.display())]
    TooFew { path: PathBuf, found: usize },
}

/// Images with their labels.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Digits {
    /// [`PIXELS`] an image, each from 0 (paper) to 1 (ink).
    pub images: Vec<f32>,
    /// One an image.
    pub labels: Vec<u8>,
}

impl Digits {
    /// Reads a CSV, gzipped or not: [`PIXELS`] columns from 0 to 16, then the label.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let mut file = File::open(path).map_err(|source| Error::Open { path: path.into(), source })?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(|source| Error::Read { path: path.into(), source })?;
        // The whole first: its checksum tells a damaged file from one with a wrong line.
        let mut text = Vec::new();
        if is_text(&bytes) {
            text = bytes;
        } else {
            GzDecoder::new(bytes.as_slice()).read_to_end(&mut text).map_err(|source| unreadable(path, source))?;
        }
        let mut digits = Self::default();
        let mut reader =
            ReaderBuilder::new().has_headers(false).flexible(true).trim(Trim::All).from_reader(text.as_slice());
        for record in reader.byte_records() {
            digits.push(path, &record.map_err(|error| unreadable(path, error.into()))?)?;
        }
        if digits.len() < HELD_OUT {
            return Err(Error::TooFew { path: path.into(), found: digits.len() });
        }
        Ok(digits)
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Every image with its label.
    pub fn iter(&self) -> impl Iterator<Item = (&[f32], u8)> {
        self.images.chunks_exact(PIXELS).zip(self.labels.iter().copied())
    }

    /// The images in an order drawn from the seed, and a fifth of them apart: those to train on, those held out.
    pub fn split(&self, seed: u64) -> (Self, Self) {
        let mut order: Vec<_> = self.iter().collect();
        fastrand::Rng::with_seed(seed).shuffle(&mut order);
        let (held_out, train) = order.split_at(order.len() / HELD_OUT);
        (Self::collect(train), Self::collect(held_out))
    }

    /// Deals the labels out anew: what is learned from them must not carry over to other images.
    pub fn shuffle_labels(&mut self, seed: u64) {
        fastrand::Rng::with_seed(seed).shuffle(&mut self.labels);
    }

    /// The same images in an order drawn from the seed.
    pub fn shuffled(&self, seed: u64) -> Self {
        let mut order: Vec<_> = self.iter().collect();
        fastrand::Rng::with_seed(seed).shuffle(&mut order);
        Self::collect(&order)
    }

    /// Pieces of `size` images; what is left over at the end is not in any.
    pub fn batches(&self, size: usize) -> impl Iterator<Item = Self> {
        let images = self.images.chunks_exact(size * PIXELS);
        let labels = self.labels.chunks_exact(size);
        images.zip(labels).map(|(images, labels)| Self { images: images.into(), labels: labels.into() })
    }

    fn collect(digits: &[(&[f32], u8)]) -> Self {
        Self {
            images: digits.iter().flat_map(|(image, _)| image.iter().copied()).collect(),
            labels: digits.iter().map(|(_, label)| *label).collect(),
        }
    }

    fn push(&mut self, path: &Path, record: &ByteRecord) -> Result<(), Error> {
        let line = record.position().map_or(0, |position| position.line());
        let path = || path.to_path_buf();
        let text = |field: &[u8]| String::from_utf8_lossy(field).into_owned();
        let mut fields = record.iter();
        let (Some(label), PIXELS) = (fields.next_back(), fields.len()) else {
            return Err(Error::Columns { path: path(), line, found: record.len() });
        };
        for (index, field) in fields.enumerate() {
            let pixel = number::<f32>(field)
                .filter(|pixel| (0.0..=INK).contains(pixel))
                .ok_or_else(|| Error::Pixel { path: path(), line, column: index + 1, text: text(field) })?;
            self.images.push(pixel / INK);
        }
        let label = number::<u8>(label).filter(|label| *label < CLASSES).ok_or_else(|| Error::Label {
            path: path(),
            line,
            text: text(label),
        })?;
        self.labels.push(label);
        Ok(())
    }
}

/// The first byte of gzip is a control character, and its second one begins no letter.
fn is_text(bytes: &[u8]) -> bool {
    let is_letter = |letter: char| !letter.is_control() || letter.is_ascii_whitespace();
    !bytes.is_empty() && std::str::from_utf8(bytes).is_ok_and(|text| text.chars().all(is_letter))
}

fn number<T: std::str::FromStr>(field: &[u8]) -> Option<T> {
    std::str::from_utf8(field).ok()?.parse().ok()
}

/// What went wrong beneath the lines.
fn unreadable(path: &Path, source: io::Error) -> Error {
    let path = path.to_path_buf();
    match source.kind() {
        io::ErrorKind::UnexpectedEof => Error::Truncated { path },
        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => Error::Corrupt { path, source },
        _ => Error::Read { path, source },
    }
}
