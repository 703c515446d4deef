//! The program from end to end.

use crate::data::PIXELS;
use crate::network::Network;
use crate::options::Options;
use crate::program::run;
use argh::FromArgs;
use std::fs;
use std::path::{Path, PathBuf};
use tinyspec::nn::Model;

/// Twelve images, too few for a whole batch; a file of this process.
fn few() -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("few-{}.csv", std::process::id()));
    let lines: Vec<String> =
        (0..12).map(|line| format!("{}{}", format!("{line},").repeat(PIXELS), line % 10)).collect();
    fs::write(&path, lines.join("\n")).unwrap();
    path
}

fn output(arguments: &[&str]) -> String {
    let _alone = crate::alone();
    let few = few();
    let epochs: &[&str] = if arguments.contains(&"--epochs") { &[] } else { &["--epochs", "2"] };
    let line = [&["--data", few.to_str().unwrap()], epochs, arguments].concat();
    let mut out = Vec::new();
    run(&Options::from_args(&["digits"], &line).unwrap(), &mut out).unwrap();
    fs::remove_file(&few).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn few_images_are_a_short_batch() {
    let text = output(&[]);
    assert!(text.contains("10 images to train on, 2 held out"), "{text}");
    let loss = |epoch: &str| -> f32 {
        let (_, rest) = text.split_once(&format!("epoch  {epoch}  loss ")).unwrap();
        rest.split_whitespace().next().unwrap().parse().unwrap()
    };
    assert!(loss("1") > 0.0 && loss("1") != loss("2"), "{text}");
}

#[test]
fn weights_are_kept_where_the_user_says_and_nowhere_else() {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("kept.safetensors");
    let text = output(&["--weights", path.to_str().unwrap()]);
    assert!(text.contains(&format!("weights saved to {}", path.display())), "{text}");
    assert!(Network::load(&path).is_ok());
    let text = output(&[]);
    let (_, rest) = text.split_once("weights saved to ").unwrap();
    let (temporary, _) = rest.split_once(" and loaded back").unwrap();
    assert!(!Path::new(temporary).exists(), "{temporary}");
}

#[test]
fn weights_that_cannot_be_saved_do_not_lose_the_run() {
    let text = output(&["--weights", "/nowhere/at/all.safetensors"]);
    assert!(text.contains("weights not saved: weights file /nowhere/at/all.safetensors"), "{text}");
    assert!(text.contains("test accuracy "), "{text}");
}

#[test]
fn a_training_goes_on_where_it_was_left() {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("training-{}.safetensors", std::process::id()));
    let file = path.to_str().unwrap();
    for devices in ["1", "2"] {
        let epoch = |text: &str, number: u32| -> String {
            text.lines().find(|line| line.starts_with(&format!("epoch  {number}"))).unwrap_or_default().to_string()
        };
        let whole = output(&["--epochs", "4", "--devices", devices]);
        let first = output(&["--epochs", "3", "--devices", devices, "--training", file]);
        assert_eq!(epoch(&first, 3), epoch(&whole, 3));
        let second = output(&["--epochs", "4", "--devices", devices, "--training", file]);
        assert!(second.contains("3 epochs were trained before") && epoch(&second, 3).is_empty(), "{second}");
        assert!(!epoch(&second, 4).is_empty(), "{second}");
        assert_eq!(epoch(&second, 4), epoch(&whole, 4));
        fs::remove_file(&path).unwrap();
    }
}
