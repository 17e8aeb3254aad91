//! On the files of `tests/binding_models.py`, in the folder that POLYGRAD_TEST_FILES names.

use std::path::PathBuf;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use polygrad::{DType, Element, Error, ErrorKind, Input, Model, Options, Size};

fn file(name: &str) -> PathBuf {
    PathBuf::from(std::env::var_os("POLYGRAD_TEST_FILES").expect("POLYGRAD_TEST_FILES is set")).join(name)
}

fn kind_of<T>(result: Result<T, Error>) -> ErrorKind {
    result.err().expect("an error").kind()
}

const X: [f32; 8] = [1.0, 2.0, 3.0, -1.0, -2.0, 0.5, 0.0, 1.0];
const Y: [i32; 4] = [0, 1, 2, 1];

fn train(model: &mut Model, steps: usize) -> Vec<f32> {
    let step = |_| model.run(&[("x", (&X).into()), ("y", (&Y).into())])?.item("loss");
    (0..steps).map(step).collect::<Result<_, _>>().unwrap()
}

#[test]
fn a_model_says_what_it_has() {
    let model = Model::open(file("training.pgrd")).unwrap();
    assert_eq!((model.device().as_str(), model.kind().as_str()), ("WASM", ""));
    let x = &model.inputs()[0];
    assert_eq!((x.name.as_str(), x.dtype), ("x", DType::Float32));
    assert_eq!(x.shape, [Size::Fixed(4), Size::Fixed(2)]);
    assert_eq!(model.inputs()[1].dtype, DType::Int32);
    assert_eq!(model.outputs()[0].name, "loss");
    assert!(model.outputs()[0].shape.is_empty());
    let weight = model.values().iter().find(|info| info.name == "weight").unwrap();
    assert_eq!(weight.shape, [Size::Fixed(3), Size::Fixed(2)]);
    assert!(model.values().iter().any(|info| info.name == "optimizer.lr"));
}

#[test]
fn training_stays_in_the_model() {
    let mut model = Model::open(file("training.pgrd")).unwrap();
    let before = model.value::<f32>("weight").unwrap().to_vec();
    let losses = train(&mut model, 20);
    assert!(losses[19] < losses[0] / 2.0, "{losses:?}");
    assert_ne!(model.value::<f32>("weight").unwrap(), before);
}

#[test]
fn a_saved_model_goes_on_where_it_was() {
    let mut model = Model::open(file("training.pgrd")).unwrap();
    train(&mut model, 5);
    let bytes = model.to_bytes().unwrap();
    let path = std::env::temp_dir().join(format!("polygrad-{}.safetensors", std::process::id()));
    model.save(&path).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
    let expected = train(&mut model, 3);

    let mut other = Model::open(file("training.pgrd")).unwrap();
    other.load_bytes(&bytes).unwrap();
    assert_eq!(train(&mut other, 3), expected);
    other.load(&path).unwrap();
    assert_eq!(train(&mut other, 3), expected);
    std::fs::remove_file(path).unwrap();
    assert_eq!(kind_of(other.load(file("nowhere"))), ErrorKind::Io);
    assert_eq!(kind_of(other.load_bytes(&bytes[..20])), ErrorKind::Damaged);
}

#[test]
fn values_are_read_and_written() {
    let mut model = Model::open(file("training.pgrd")).unwrap();
    model.set_value("bias", &[1.0f32, 2.0, 3.0]).unwrap();
    assert_eq!(model.value::<f32>("bias").unwrap(), [1.0, 2.0, 3.0]);
    model.value_mut::<f32>("bias").unwrap()[1] = 5.0;
    assert_eq!(model.value::<f32>("bias").unwrap(), [1.0, 5.0, 3.0]);
    model.set_value("optimizer.lr", &[0.0f32]).unwrap();
    let losses = train(&mut model, 2);
    assert_eq!(losses[0], losses[1]);
    assert_eq!(kind_of(model.set_value("bias", &[1.0f32])), ErrorKind::Shape);
    assert_eq!(kind_of(model.set_value("bias", &[1i32, 2, 3])), ErrorKind::Argument);
    assert_eq!(kind_of(model.value::<f64>("bias")), ErrorKind::Argument);
    assert_eq!(kind_of(model.value::<f32>("scale")), ErrorKind::NotFound);
}

/// 100 i + 10 j + k at each place of (2, 3, 4), as bits of one byte each: less than 2 for bool.
fn places<T: Element>(make: impl Fn(u8) -> T) -> (Vec<T>, Vec<T>) {
    let mut rows = Vec::new();
    let mut permuted = Vec::new();
    for i in 0..2u8 {
        for j in 0..3u8 {
            rows.extend((0..4u8).map(|k| make(100 * i + 10 * j + k)));
        }
    }
    for k in 0..4u8 {
        for i in 0..2u8 {
            permuted.extend((0..3u8).map(|j| make(100 * i + 10 * j + k)));
        }
    }
    (rows, permuted)
}

#[test]
fn elements_of_all_dtypes_are_in_row_major_order() {
    let bit = places(|n| n % 2);
    let (i8s, u8s) = (places(|n| n as i8), places(|n| n));
    let (i16s, u16s) = (places(|n| n as i16 - 500), places(|n| 60000 + n as u16));
    let (i32s, u32s) = (places(|n| n as i32 - 70000), places(|n| 4_000_000_000 + n as u32));
    let (i64s, u64s) = (places(|n| n as i64 - (1 << 60)), places(|n| (1 << 63) + n as u64));
    let halves = places(|n| 0x3c00 + n as u16);
    let (f32s, f64s) = (places(|n| n as f32 + 0.5), places(|n| n as f64 + 0.1));
    let mut model = Model::open(file("permuted.pgrd")).unwrap();
    let outputs = model
        .run(&[
            ("x.bool", (&bit.0).into()),
            ("x.int8", (&i8s.0).into()),
            ("x.uint8", (&u8s.0).into()),
            ("x.int16", (&i16s.0).into()),
            ("x.uint16", (&u16s.0).into()),
            ("x.int32", (&i32s.0).into()),
            ("x.uint32", (&u32s.0).into()),
            ("x.int64", (&i64s.0).into()),
            ("x.uint64", (&u64s.0).into()),
            ("x.float16", (&halves.0).into()),
            ("x.bfloat16", (&halves.0).into()),
            ("x.float32", Input::shaped(&f32s.0, &[2, 3, 4])),
            ("x.float64", (&f64s.0).into()),
        ])
        .unwrap();
    assert_eq!(outputs.shape("int8").unwrap(), [4, 2, 3]);
    assert_eq!(outputs.get::<u8>("bool").unwrap(), bit.1);
    assert_eq!(outputs.get::<i8>("int8").unwrap(), i8s.1);
    assert_eq!(outputs.get::<u8>("uint8").unwrap(), u8s.1);
    assert_eq!(outputs.get::<i16>("int16").unwrap(), i16s.1);
    assert_eq!(outputs.get::<u16>("uint16").unwrap(), u16s.1);
    assert_eq!(outputs.get::<i32>("int32").unwrap(), i32s.1);
    assert_eq!(outputs.get::<u32>("uint32").unwrap(), u32s.1);
    assert_eq!(outputs.get::<i64>("int64").unwrap(), i64s.1);
    assert_eq!(outputs.get::<u64>("uint64").unwrap(), u64s.1);
    assert_eq!(outputs.get::<u16>("float16").unwrap(), halves.1);
    assert_eq!(outputs.get::<u16>("bfloat16").unwrap(), halves.1);
    assert_eq!(outputs.get::<f32>("float32").unwrap(), f32s.1);
    assert_eq!(outputs.get::<f64>("float64").unwrap(), f64s.1);
    assert_eq!(kind_of(outputs.get::<f32>("float64")), ErrorKind::Argument);
    assert_eq!(kind_of(outputs.item::<f32>("float32")), ErrorKind::Shape);
    assert_eq!(kind_of(outputs.get::<f32>("x")), ErrorKind::NotFound);
}

#[test]
fn variables_come_from_shapes_counts_or_by_name() {
    let x = [1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0];
    let mut model = Model::open(file("sizes.pgrd")).unwrap();
    for input in [Input::from(&x), Input::shaped(&x, &[2, 3])] {
        let outputs = model.run(&[("x", input)]).unwrap();
        assert_eq!(outputs.shape("twice").unwrap(), [2, 3]);
        assert_eq!(outputs.get::<f32>("twice").unwrap(), [2.0, 4.0, 6.0, 8.0, 10.0, 12.0]);
        assert_eq!(outputs.get::<f32>("sum").unwrap(), [5.0, 7.0, 9.0]);
    }
    let mut first = Model::open(file("first.pgrd")).unwrap();
    assert_eq!(first.entries()[0].variables[0].name, "k");
    for k in [2, 6] {
        let outputs = first.run(&[("x", (&x).into()), ("k", k.into())]).unwrap();
        assert_eq!(outputs.get::<f32>("first").unwrap(), &[2.0, 3.0, 4.0, 5.0, 6.0, 7.0][..k as usize]);
    }

    for k in [0, 7] {
        assert_eq!(kind_of(first.run(&[("x", (&x).into()), ("k", k.into())])), ErrorKind::Argument);
    }
    assert_eq!(kind_of(first.run(&[("x", (&x).into())])), ErrorKind::Argument);
    assert_eq!(kind_of(model.run(&[("x", (&x).into()), ("n", 3.into())])), ErrorKind::Shape);
    assert_eq!(kind_of(model.run(&[("x", Input::shaped(&x, &[3, 2]))])), ErrorKind::Shape);
    assert_eq!(kind_of(model.run(&[("x", Input::shaped(&x, &[1, 3]))])), ErrorKind::Shape);
    assert_eq!(kind_of(model.run(&[("x", (&x[..5]).into())])), ErrorKind::Shape);
    let many = [0.0f32; 27];
    assert!(matches!(kind_of(model.run(&[("x", (&many).into())])), ErrorKind::Shape | ErrorKind::Argument));
}

#[test]
fn inputs_that_are_not_the_models_are_errors() {
    let mut model = Model::open(file("training.pgrd")).unwrap();
    let (x, y): (Input, Input) = ((&X).into(), (&Y).into());
    for inputs in [vec![("x", x)], vec![("x", x), ("z", y)], vec![("x", x), ("y", y), ("z", y)]] {
        let error = model.run(&inputs).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Argument);
        assert!(error.to_string().starts_with("run: expected the inputs [\"x\", \"y\"], got"), "{error}");
    }
    assert_eq!(kind_of(model.run(&[("x", y), ("y", x)])), ErrorKind::Argument);
    assert_eq!(kind_of(model.run(&[("x", (&X[..6]).into()), ("y", y)])), ErrorKind::Shape);
    assert_eq!(train(&mut model, 1).len(), 1);
}

#[test]
fn files_that_cannot_be_opened_are_errors() {
    assert_eq!(kind_of(Model::open(file("nowhere.pgrd"))), ErrorKind::Io);
    let mut bytes = std::fs::read(file("training.pgrd")).unwrap();
    assert!(Model::from_bytes(&bytes, &Options::default()).is_ok());
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    assert_eq!(kind_of(Model::from_bytes(&bytes, &Options::default())), ErrorKind::Digest);
    assert_eq!(kind_of(Model::from_bytes(b"text", &Options::default())), ErrorKind::Format);
    let small = Options { max_bytes: 10, ..Options::default() };
    assert_eq!(kind_of(Model::open_with(file("training.pgrd"), &small)), ErrorKind::Memory);
    let no_engine = Options { wasmtime: Some(file("nowhere.so")), ..Options::default() };
    assert_eq!(kind_of(Model::open_with(file("training.pgrd"), &no_engine)), ErrorKind::NoEngine);
}

#[test]
fn native_code_runs_where_it_is_trusted() {
    assert_eq!(kind_of(Model::open(file("native.pgrd"))), ErrorKind::Trust);
    let options = Options { native: true, threads: 2, ..Options::default() };
    let mut model = Model::open_with(file("native.pgrd"), &options).unwrap();
    let outputs = model.run(&[("x", (&[1.0f32, 2.0, 3.0]).into())]).unwrap();
    assert_eq!(outputs.get::<f32>("twice").unwrap(), [2.0, 4.0, 6.0]);
}

#[test]
fn a_timeout_and_another_thread_end_a_run() {
    let options = Options { stoppable: true, ..Options::default() };
    let mut model = Model::open_with(file("endless.pgrd"), &options).unwrap();
    let start = Instant::now();
    assert_eq!(kind_of(model.run_timeout(&[], Duration::from_millis(50))), ErrorKind::Timeout);
    let interrupter = model.interrupter();
    let (sender, receiver) = std::sync::mpsc::channel();
    let other = thread::spawn(move || {
        while receiver.recv_timeout(Duration::from_millis(5)).is_err() {
            interrupter.interrupt().unwrap();
        }
    });
    assert_eq!(kind_of(model.run(&[])), ErrorKind::Interrupted);
    sender.send(()).unwrap();
    other.join().unwrap();
    assert!(start.elapsed() < Duration::from_secs(20));
    assert_eq!(model.value::<i32>("x").unwrap(), [0, 0]);

    let unstoppable = Model::open(file("endless.pgrd")).unwrap();
    assert_eq!(kind_of(unstoppable.interrupter().interrupt()), ErrorKind::Argument);
}

#[test]
fn an_interrupter_may_outlive_its_model() {
    let options = Options { stoppable: true, ..Options::default() };
    let model = Model::open_with(file("sizes.pgrd"), &options).unwrap();
    let interrupter = model.interrupter();
    drop(model);
    interrupter.interrupt().unwrap();
}

#[test]
fn a_bundle_has_entries_and_files() {
    let mut model = Model::open(file("bundle.pgrd")).unwrap();
    assert_eq!(model.kind(), "corpus");
    assert_eq!(model.entries()[0].name, "main");
    let n = Input::from(3);
    let outputs = model.run_entry("main", &[("x", (&[1i32, 4]).into()), ("n", n)]).unwrap();
    assert_eq!(outputs.get::<i32>("y").unwrap()[1], 21);
    assert_eq!(model.settings(), "{\"scale\":0.5}");
    assert_eq!(model.file("notes.txt").unwrap(), b"text");
    assert_eq!(kind_of(model.run_entry("other", &[])), ErrorKind::NotFound);
    let error = model.file("nowhere").err().unwrap();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

#[test]
fn models_move_to_other_threads_and_are_shared_by_a_mutex() {
    fn send<T: Send>(_: &T) {}
    fn sync<T: Sync>(_: &T) {}
    let model = Model::open(file("training.pgrd")).unwrap();
    send(&model);
    send(&model.interrupter());
    sync(&model.interrupter());
    let shared = Mutex::new(model);
    sync(&shared);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| train(&mut shared.lock().unwrap(), 5));
        }
    });
    let mut alone = Model::open(file("training.pgrd")).unwrap();
    train(&mut alone, 20);
    assert_eq!(shared.lock().unwrap().to_bytes().unwrap(), alone.to_bytes().unwrap());
}
