//! Descriptions of tensors, and the types that their elements have in Rust.

use std::ffi::CStr;
use std::os::raw::c_char;
use std::slice;

use crate::declarations::{pg_tensor, pg_variable, DType};

/// The size of an axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Size {
    Fixed(usize),
    /// The index of a [`Variable`] of the entry, whose value each run is given.
    Variable(usize),
}

impl Size {
    /// The size with these values of the entry's Variables.
    pub(crate) fn value(&self, variables: &[Option<i64>]) -> Option<usize> {
        match *self {
            Size::Fixed(size) => Some(size),
            Size::Variable(index) => variables[index].and_then(|n| usize::try_from(n).ok()),
        }
    }
}

/// An input, an output, or a value: a parameter or a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorInfo {
    pub name: String,
    pub dtype: DType,
    pub shape: Vec<Size>,
    /// Whether runs may write it.
    pub is_state: bool,
    pub(crate) nbytes: usize,
}

/// An integer that each run is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    pub name: String,
    pub lo: i64,
    pub hi: i64,
}

mod sealed {
    pub trait Sealed {}
}

/// A type of elements. 16-bit floats are `u16` and 8-bit floats and bool `u8`: their bits.
pub trait Element: Copy + sealed::Sealed + 'static {
    /// Whether elements of this dtype are read and written as this type.
    fn is_of(dtype: DType) -> bool;
}

macro_rules! elements {
    ($($type:ty: $($dtype:ident)|+;)*) => {
        $(
            impl sealed::Sealed for $type {}
            impl Element for $type {
                fn is_of(dtype: DType) -> bool {
                    matches!(dtype, $(DType::$dtype)|+)
                }
            }
        )*
    };
}

// Every pattern of bits is a value of these types, as what others wrote may have any.
elements! {
    i8: Int8;
    u8: Uint8 | Bool | Fp8E4M3 | Fp8E5M2;
    i16: Int16;
    u16: Uint16 | Float16 | Bfloat16;
    i32: Int32;
    u32: Uint32;
    i64: Int64;
    u64: Uint64;
    f32: Float32;
    f64: Float64;
}

/// Safety: `text` ends with a NUL, or is null.
pub(crate) unsafe fn owned(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    CStr::from_ptr(text).to_string_lossy().into_owned()
}

impl TensorInfo {
    /// Safety: the library wrote `tensor`, and its model is open.
    pub(crate) unsafe fn of(tensor: &pg_tensor) -> TensorInfo {
        let axes = if tensor.rank == 0 {
            (&[][..], &[][..])
        } else {
            let rank = tensor.rank as usize;
            (slice::from_raw_parts(tensor.shape, rank), slice::from_raw_parts(tensor.variables, rank))
        };
        let shape = axes.0.iter().zip(axes.1);
        TensorInfo {
            name: owned(tensor.name),
            dtype: DType::of(tensor.dtype),
            shape: shape
                .map(|(&size, &variable)| match usize::try_from(variable) {
                    Ok(variable) => Size::Variable(variable),
                    Err(_) => Size::Fixed(size as usize),
                })
                .collect(),
            is_state: tensor.is_state != 0,
            nbytes: tensor.nbytes as usize,
        }
    }
}

impl Variable {
    /// Safety: the library wrote `variable`, and its model is open.
    pub(crate) unsafe fn of(variable: &pg_variable) -> Variable {
        Variable { name: owned(variable.name), lo: variable.lo, hi: variable.hi }
    }
}
