//! Files that are saved: by several threads, over older ones, and by processes that are killed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Barrier;
use std::time::{Duration, Instant};
use tinyspec_core::nn::{load, save};
use tinyspec_core::{Error, Tensor};

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("files-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir(&folder).unwrap();
    folder
}

fn names(folder: &Path) -> Vec<String> {
    let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
    let mut names: Vec<String> = fs::read_dir(folder).unwrap().map(name).collect();
    names.sort();
    names
}

fn value(file: &Path) -> Vec<f32> {
    load(file).unwrap_or_else(|error| panic!("{error}"))["w"].to_vec().unwrap()
}

#[test]
fn threads_save_side_by_side() {
    let folder = folder("threads");
    // One name but for the extension, and one file that all of them write.
    let files = ["ck.one", "ck.two", "ck"];
    let together = Barrier::new(files.len());
    std::thread::scope(|scope| {
        for (number, name) in (1..).zip(files) {
            let (folder, together) = (&folder, &together);
            scope.spawn(move || {
                let w = Tensor::full([4096 * number], number as f32).contiguous();
                for _ in 0..20 {
                    together.wait();
                    save(folder.join(name), &[("w", &w)]).unwrap();
                    save(folder.join("shared"), &[("w", &w)]).unwrap();
                    assert_eq!(value(&folder.join(name)), vec![number as f32; 4096 * number]);
                    let shared = value(&folder.join("shared"));
                    assert_eq!(shared.len(), 4096 * shared[0] as usize);
                }
            });
        }
    });
    assert_eq!(names(&folder), ["ck", "ck.one", "ck.two", "shared"]);
    fs::remove_dir_all(folder).unwrap();
}

#[test]
#[ignore = "run, and killed, by the test below"]
fn save_until_killed() {
    let folder = PathBuf::from(std::env::var_os("TINYSPEC_TEST_FOLDER").expect("run by the test below"));
    let w = Tensor::ones([1 << 22]).contiguous();
    loop {
        save(folder.join("ck"), &[("w", &w)]).unwrap();
    }
}

#[test]
fn what_a_killed_process_leaves_is_removed() {
    let folder = folder("killed");
    let mut is_left = false;
    for _ in 0..20 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "files::save_until_killed", "--include-ignored"])
            .env("TINYSPEC_TEST_FOLDER", &folder)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let begin = Instant::now();
        while names(&folder).iter().all(|name| name == "ck") && begin.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_micros(200));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        is_left = names(&folder).iter().any(|name| name != "ck");
        if is_left {
            break;
        }
    }
    assert!(is_left, "no process was killed while it wrote");
    save(folder.join("other"), &[("w", &Tensor::ones([2]))]).unwrap();
    let left: Vec<String> = names(&folder).into_iter().filter(|name| name != "ck").collect();
    assert_eq!(left, ["other"]);
    // It was replaced as a whole, or not at all.
    if folder.join("ck").exists() {
        assert_eq!(value(&folder.join("ck")).len(), 1 << 22);
    }
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_save_that_fails_changes_nothing() -> Result<(), Error> {
    let folder = folder("failing");
    let w = Tensor::ones([3]);
    save(folder.join("ck"), &[("w", &w)])?;
    let error = save(folder.join("ck"), &[("w", &(&w + Tensor::ones([4])))]).unwrap_err();
    assert!(error.to_string().contains("[4]"), "{error}");
    assert_eq!(value(&folder.join("ck")), [1.0; 3]);
    fs::create_dir(folder.join("taken")).unwrap();
    let error = save(folder.join("taken"), &[("w", &w)]).unwrap_err();
    assert!(error.to_string().contains("taken: it is a folder"), "{error}");
    let error = save(folder.join("nowhere").join("ck"), &[("w", &w)]).unwrap_err();
    assert!(error.to_string().contains("nowhere"), "{error}");
    assert_eq!(names(&folder), ["ck", "taken"]);
    fs::remove_dir_all(folder).unwrap();
    Ok(())
}

#[cfg(unix)]
#[test]
fn links_are_followed_and_permissions_kept() -> Result<(), Error> {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = folder("links");
    let (file, link) = (folder.join("step-1"), folder.join("latest"));
    save(&file, &[("w", &Tensor::ones([3]))])?;
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    symlink("step-1", &link).unwrap();
    save(&link, &[("w", &Tensor::zeros([2]))])?;
    assert_eq!(value(&file), [0.0; 2]);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
    let ahead = folder.join("next");
    symlink("step-2", &ahead).unwrap();
    save(&ahead, &[("w", &Tensor::ones([3]))])?;
    assert_eq!(value(&folder.join("step-2")), [1.0; 3]);
    assert!(fs::symlink_metadata(&ahead).unwrap().is_symlink());
    fs::remove_dir_all(folder).unwrap();
    Ok(())
}

#[cfg(unix)]
#[test]
fn pipes_are_written_to_and_names_may_be_long() -> Result<(), Error> {
    use std::os::unix::fs::FileTypeExt;
    let folder = folder("pipes");
    let (pipe, plain) = (folder.join("pipe"), folder.join("n".repeat(250)));
    save(&plain, &[("w", &Tensor::ones([3]))])?;
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || fs::read(pipe).unwrap()
    });
    save(&pipe, &[("w", &Tensor::ones([3]))])?;
    assert_eq!(reader.join().unwrap(), fs::read(&plain).unwrap());
    assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo());
    fs::remove_dir_all(folder).unwrap();
    Ok(())
}
