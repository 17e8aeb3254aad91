//! Trains the digit classifier that `examples/export_digits.py FOLDER` exported, without Python:
//!
//!     cargo run --release --example digits FOLDER [--native]
//!
//! Prints one line of JSON, as `examples/digits.py --json` does, and saves `trained.safetensors` to the folder.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use polygrad::{Model, Options};

const BATCH: usize = 64;
const PIXELS: usize = 64;

struct Digits {
    images: Vec<u8>,
    labels: Vec<i32>,
}

impl Digits {
    fn read(folder: &Path, name: &str) -> std::io::Result<Digits> {
        let images = fs::read(folder.join(format!("{name}_images.u8")))?;
        let labels = read_i32(&folder.join(format!("{name}_labels.i32")))?;
        Ok(Digits { images, labels })
    }

    fn batch(&self, number: usize) -> (&[u8], &[i32]) {
        let rows = number * BATCH..(number + 1) * BATCH;
        (&self.images[rows.start * PIXELS..rows.end * PIXELS], &self.labels[rows])
    }
}

fn read_i32(path: &Path) -> std::io::Result<Vec<i32>> {
    let bytes = fs::read(path)?;
    Ok(bytes.chunks_exact(4).map(|b| i32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect())
}

/// Loss and accuracy.
fn evaluate(model: &mut Model, digits: &Digits) -> polygrad::Result<(f32, f32)> {
    let outputs = model.run(&[("images", (&digits.images).into()), ("labels", (&digits.labels).into())])?;
    Ok((outputs.item("loss")?, outputs.item("accuracy")?))
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let folder = PathBuf::from(arguments.first().ok_or("expected the folder of the exported files")?);
    let options = Options { native: arguments.contains(&String::from("--native")), ..Options::default() };
    let (training, held_out) = (Digits::read(&folder, "train")?, Digits::read(&folder, "test")?);
    let order = read_i32(&folder.join("order.i32"))?;

    let mut step = Model::open_with(folder.join("training.pgrd"), &options)?;
    let mut seconds = Vec::new();
    for &number in &order {
        let (images, labels) = training.batch(number as usize);
        let start = Instant::now();
        let outputs = step.run(&[("images", images.into()), ("labels", labels.into())])?;
        let _loss: f32 = outputs.item("loss")?;
        seconds.push(start.elapsed().as_secs_f64());
    }
    step.save(folder.join("trained.safetensors"))?;

    let mut evaluation = Model::open_with(folder.join("evaluation.pgrd"), &options)?;
    let names: Vec<String> = evaluation.values().iter().map(|info| info.name.clone()).collect();
    for name in names {
        evaluation.set_value(&name, step.value::<f32>(&name)?)?;
    }
    let (loss, _) = evaluate(&mut evaluation, &training)?;
    let (_, accuracy) = evaluate(&mut evaluation, &held_out)?;

    let first = seconds.remove(0);
    let total: f64 = seconds.iter().sum();
    let steps_per_second = seconds.len() as f64 / total;
    seconds.sort_by(f64::total_cmp);
    let compile_seconds = first - seconds[seconds.len() / 2];
    println!(
        "{{\"host\": \"rust\", \"device\": \"{}\", \"steps_per_second\": {steps_per_second}, \
         \"compile_seconds\": {compile_seconds}, \"final_loss\": {loss}, \"test_accuracy\": {accuracy}}}",
        step.device()
    );
    Ok(())
}
