//! Runs and trains models that polygrad exported (`.pgrd` files), through libpolygrad.
//!
//! ```no_run
//! use polygrad::Model;
//!
//! fn main() -> polygrad::Result<()> {
//!     let mut model = Model::open("training.pgrd")?;
//!     let (x, y) = ([1.0f32, 2.0, 3.0, -1.0], [0i32, 2]);
//!     for _ in 0..10 {
//!         let outputs = model.run(&[("x", (&x).into()), ("y", (&y).into())])?;
//!         println!("{}", outputs.item::<f32>("loss")?);
//!     }
//!     model.save("trained.safetensors")
//! }
//! ```
//!
//! The crate has no dependencies. It opens the shared library when the first model is opened, so it is
//! built without it, and where there is none, [`Model::open`] returns [`ErrorKind::NoLibrary`]. The
//! library is the one that the environment variable `POLYGRAD_LIBRARY` names, else the system's.

mod declarations;
mod error;
mod inputs;
mod library;
mod model;
mod tensor;

pub use declarations::{DType, ErrorKind};
pub use error::{Error, Result};
pub use inputs::Input;
pub use model::{Entry, Interrupter, Model, Options, Outputs};
pub use tensor::{Element, Size, TensorInfo, Variable};
