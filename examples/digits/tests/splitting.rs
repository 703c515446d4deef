use std::path::Path;

use crate::data::Digits;

fn shipped() -> Digits {
    Digits::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("digits/data/digits.csv.gz")).unwrap()
}

/// The images as whole numbers, in an order that does not depend on the file's.
fn sorted(parts: &[&Digits]) -> Vec<(Vec<u8>, u8)> {
    let images = parts.iter().flat_map(|digits| digits.iter());
    let mut images: Vec<_> =
        images.map(|(image, label)| (image.iter().map(|pixel| (pixel * 16.0) as u8).collect(), label)).collect();
    images.sort();
    images
}

#[test]
fn a_fifth_is_held_out_and_nothing_lost() {
    let digits = shipped();
    let (train, test) = digits.split(1);
    assert_eq!((train.len(), test.len()), (1438, 359));
    assert_eq!(sorted(&[&train, &test]), sorted(&[&digits]));
}

#[test]
fn the_seed_decides_the_split() {
    let digits = shipped();
    assert_eq!(digits.split(1), digits.split(1));
    assert_ne!(digits.split(1), digits.split(2));
}

#[test]
fn shuffled_labels_are_the_same_labels_elsewhere() {
    let digits = shipped();
    let mut shuffled = digits.clone();
    shuffled.shuffle_labels(1);
    assert_eq!(shuffled.images, digits.images);
    let kept = shuffled.labels.iter().zip(&digits.labels).filter(|(one, other)| one == other).count();
    assert!(kept < digits.len() / 5, "{kept} labels stayed");
    let counts = |digits: &Digits| {
        let mut labels = digits.labels.clone();
        labels.sort();
        labels
    };
    assert_eq!(counts(&shuffled), counts(&digits));
}

#[test]
fn batches_of_the_shuffled_images_leave_only_a_rest_out() {
    let (train, _) = shipped().split(1);
    let shuffled = train.shuffled(3);
    assert_ne!(shuffled, train);
    assert_eq!(sorted(&[&shuffled]), sorted(&[&train]));
    let batches: Vec<Digits> = shuffled.batches(32).collect();
    assert_eq!(batches.len(), train.len() / 32);
    assert!(batches.iter().all(|batch| batch.len() == 32));
    assert_eq!(batches[1].labels[..], shuffled.labels[32..64]);
}
