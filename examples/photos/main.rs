//! A JPEG decoder as a source of batches: files are the input of a training step, and their pixels never leave the program.
//!
//! `cargo run --release --example photos` learns to tell three kinds of pictures, which it compresses first.

use jpeg_decoder::Decoder;
use jpeg_encoder::{ColorType, Encoder};
use tinyspec::prelude::*;
use tinyspec::{CustomFunction, register_function};

const SIDE: usize = 32;
/// Files are padded to rows of this length; a decoder stops at the end of its image.
const LONGEST: usize = 4096;
const BATCH: usize = 32;

/// Pictures of the files in a batch.
#[function(custom = "photos::decode")]
fn decode<B, N>(files: &Tensor<u8, B, N>) -> Tensor<u8, B, 32, 32, 3>;

#[model(functions)]
struct Classifier {
    #[model(init = he)]
    w1: Tensor<f32, 3072, 32>,
    #[model(init = zeros)]
    b1: Tensor<f32, 32>,
    #[model(init = he)]
    w2: Tensor<f32, 32, 3>,
}

#[function]
impl Classifier {
    fn forward<B, N>(&self, files: &Tensor<u8, B, N>) -> Tensor<f32, B, 3> {
        let pixels = decode(files).cast::<f32>() / 127.5 - 1.0;
        let hidden = (pixels.reshape([B, 3072]).matmul(&self.w1) + &self.b1).relu();
        hidden.matmul(&self.w2)
    }
}

/// The decoder of the crate `jpeg-decoder`: one result for each row of its argument.
fn decoder() -> CustomFunction {
    CustomFunction::new("photos::decode", |arguments, _| match &arguments[0].shape[..] {
        [batch, _] if arguments[0].dtype == DType::U8 => {
            Ok(vec![Spec::new(DType::U8, [batch.clone(), SIDE.into(), SIDE.into(), 3.into()])])
        }
        _ => Err("takes the bytes of files, one in each row".into()),
    })
    .host(|mut call| {
        let length = call.inputs[0].shape()[1];
        let files = call.inputs[0].bytes().chunks_exact(length);
        for (file, pixels) in files.zip(call.outputs[0].bytes().chunks_exact_mut(SIDE * SIDE * 3)) {
            let decoded = Decoder::new(file).decode()?;
            if decoded.len() != pixels.len() {
                return Err(format!("a picture has {} bytes, {} were expected", decoded.len(), pixels.len()).into());
            }
            pixels.copy_from_slice(&decoded);
        }
        Ok(())
    })
}

/// A compressed picture of stripes, of columns or of squares, somewhere and in some colour.
fn picture(kind: usize, random: &mut fastrand::Rng) -> Vec<u8> {
    let (shift, colour) = (random.usize(..8), [random.u8(100..), random.u8(100..), random.u8(100..)]);
    let mut pixels = Vec::with_capacity(SIDE * SIDE * 3);
    for (y, x) in (0..SIDE).flat_map(|y| (0..SIDE).map(move |x| (y, x))) {
        let is_bright = match kind {
            0 => (y + shift) / 4 % 2 == 0,
            1 => (x + shift) / 4 % 2 == 0,
            _ => ((x + shift) / 4 + y / 4) % 2 == 0,
        };
        pixels.extend(colour.map(|channel| if is_bright { channel } else { channel / 8 }));
    }
    let mut file = Vec::new();
    let side = SIDE as u16;
    Encoder::new(&mut file, 80).encode(&pixels, side, side, ColorType::Rgb).expect("a Vec takes any picture");
    file.resize(LONGEST, 0);
    file
}

/// Files and what they show.
fn batch(random: &mut fastrand::Rng) -> (Tensor, Tensor) {
    let kinds: Vec<i32> = (0..BATCH).map(|_| random.i32(0..3)).collect();
    let files: Vec<u8> = kinds.iter().flat_map(|&kind| picture(kind as usize, random)).collect();
    (Tensor::from_slice(&files, [BATCH, LONGEST]), Tensor::from_slice(&kinds, [BATCH]))
}

fn main() -> Result<()> {
    register_function(decoder())?;
    set_seed(1);
    let mut random = fastrand::Rng::with_seed(1);
    let mut model = Classifier::init();
    let mut optimizer = Adam::new(0.001);
    for step in 1..=60 {
        let (files, kinds) = batch(&mut random);
        let loss = model.forward(&files).cross_entropy(&kinds, "mean", 0.0, -100);
        model.train_step(&loss, &mut optimizer)?;
        if step % 20 == 0 {
            println!("step {step}: the loss is {:.4}", loss.item::<f32>()?);
        }
    }
    let (files, kinds) = batch(&mut random);
    let correct = model.forward(&files).argmax(1).eq(&kinds).cast(DType::I32).sum(.., false);
    println!("{} of {BATCH} new pictures are told right", correct.item::<i32>()?);
    Ok(())
}
