//! The declarations of libpolygrad. Written by scripts/generate_bindings.py from
//! libpolygrad/manifest.json: do not edit.

#![allow(dead_code, non_camel_case_types)]

use std::os::raw::{c_char, c_void};

pub const PG_API_VERSION: u32 = 1;

/// How a call ended.
pub type pg_status = i32;
pub const PG_OK: pg_status = 0;
pub const PG_ARGUMENT: pg_status = 1;
pub const PG_IO: pg_status = 2;
pub const PG_FORMAT: pg_status = 3;
pub const PG_VERSION: pg_status = 4;
pub const PG_DIGEST: pg_status = 5;
pub const PG_DAMAGED: pg_status = 6;
pub const PG_TRUST: pg_status = 7;
pub const PG_UNSUPPORTED: pg_status = 8;
pub const PG_MEMORY: pg_status = 9;
pub const PG_NO_ENGINE: pg_status = 10;
pub const PG_COMPILE: pg_status = 11;
pub const PG_TRAP: pg_status = 12;
pub const PG_SHAPE: pg_status = 13;
pub const PG_BUSY: pg_status = 14;
pub const PG_INTERRUPTED: pg_status = 15;
pub const PG_TIMEOUT: pg_status = 16;
pub const PG_HALF_WRITTEN: pg_status = 17;
pub const PG_NOT_FOUND: pg_status = 18;

/// The type of a tensor's elements.
pub type pg_dtype = i32;
pub const PG_BOOL: pg_dtype = 0;
pub const PG_INT8: pg_dtype = 1;
pub const PG_UINT8: pg_dtype = 2;
pub const PG_INT16: pg_dtype = 3;
pub const PG_UINT16: pg_dtype = 4;
pub const PG_INT32: pg_dtype = 5;
pub const PG_UINT32: pg_dtype = 6;
pub const PG_INT64: pg_dtype = 7;
pub const PG_UINT64: pg_dtype = 8;
pub const PG_FP8E4M3: pg_dtype = 9;
pub const PG_FP8E5M2: pg_dtype = 10;
pub const PG_FLOAT16: pg_dtype = 11;
pub const PG_BFLOAT16: pg_dtype = 12;
pub const PG_FLOAT32: pg_dtype = 13;
pub const PG_FLOAT64: pg_dtype = 14;

/// What a tensor is for.
pub type pg_role = i32;
pub const PG_INPUT: pg_role = 0;
pub const PG_OUTPUT: pg_role = 1;
pub const PG_VALUE: pg_role = 2;

/// How a file is opened; these may be added up.
pub type pg_flags = u32;
pub const PG_TRUST_NATIVE: pg_flags = 1;
pub const PG_STOPPABLE: pg_flags = 2;
pub const PG_TRUST_DIGESTS: pg_flags = 4;

/// A file in memory: its code, parameters and state.
#[repr(C)]
pub struct pg_model {
    _opaque: [u8; 0],
}

/// Why a call failed.
#[repr(C)]
pub struct pg_error {
    pub status: pg_status,
    pub message: [c_char; 508],
}

/// How to open a file. Zeros are the defaults.
#[repr(C)]
pub struct pg_options {
    pub flags: pg_flags,
    pub threads: u32,
    pub max_bytes: u64,
    pub wasmtime: *const c_char,
    pub reserved: [u64; 4],
}

/// A description of a tensor. What it points to belongs to the model.
#[repr(C)]
pub struct pg_tensor {
    pub name: *const c_char,
    pub dtype: pg_dtype,
    pub rank: u32,
    pub shape: *const i64,
    pub variables: *const i32,
    pub nbytes: u64,
    pub is_state: i32,
}

/// A Variable, an integer that each run is given.
#[repr(C)]
pub struct pg_variable {
    pub name: *const c_char,
    pub lo: i64,
    pub hi: i64,
}

/// The table of functions.
#[repr(C)]
pub struct pg_api {
    pub version: u32,
    /// The version of the library, such as "0.1.0".
    pub library_version: unsafe extern "C" fn() -> *const c_char,
    /// The name of a status, such as "PG_DAMAGED"; "unknown" for other numbers.
    pub status_name: unsafe extern "C" fn(status: pg_status) -> *const c_char,
    /// The name of a dtype, such as "float32"; "unknown" for other numbers.
    pub dtype_name: unsafe extern "C" fn(dtype: pg_dtype) -> *const c_char,
    /// The bytes of an element; 0 for numbers that are no dtype.
    pub dtype_size: unsafe extern "C" fn(dtype: pg_dtype) -> u32,
    /// Check a whole file in memory, for any device, and run nothing.
    pub check: unsafe extern "C" fn(data: *const c_void, nbytes: u64, error: *mut pg_error) -> pg_status,
    /// Open the exported file of a path. It is mapped: it must not be changed in place while the
    /// model is open.
    pub open_path: unsafe extern "C" fn(
        path: *const c_char,
        options: *const pg_options,
        model: *mut *mut pg_model,
        error: *mut pg_error,
    ) -> pg_status,
    /// Open the exported file in memory. The bytes are not needed after the call.
    pub open_memory: unsafe extern "C" fn(
        data: *const c_void,
        nbytes: u64,
        options: *const pg_options,
        model: *mut *mut pg_model,
        error: *mut pg_error,
    ) -> pg_status,
    /// Free a model; NULL is nothing. No other call on it may be running or come later.
    pub close: unsafe extern "C" fn(model: *mut pg_model),
    /// The device that the file was exported for, such as "WASM".
    pub device: unsafe extern "C" fn(model: *const pg_model) -> *const c_char,
    /// What the entries are for, such as "text-generation"; "" for an exported step.
    pub kind: unsafe extern "C" fn(model: *const pg_model) -> *const c_char,
    /// The settings of the file, a JSON object; "{}" for an exported step.
    pub settings: unsafe extern "C" fn(model: *const pg_model) -> *const c_char,
    /// How many other files the file has in it, such as a tokenizer.
    pub file_count: unsafe extern "C" fn(model: *const pg_model) -> u32,
    /// The name and the bytes of a file in the file.
    pub file: unsafe extern "C" fn(
        model: *const pg_model,
        index: u32,
        name: *mut *const c_char,
        data: *mut *const c_void,
        nbytes: *mut u64,
        error: *mut pg_error,
    ) -> pg_status,
    /// How many entries there are: Programs that share parameters and state. An exported step has
    /// one.
    pub entry_count: unsafe extern "C" fn(model: *const pg_model) -> u32,
    /// The name of an entry, such as "decode"; "" for an exported step, NULL for a number that is
    /// too large.
    pub entry_name: unsafe extern "C" fn(model: *const pg_model, entry: u32) -> *const c_char,
    /// The index of the entry of a name.
    pub find_entry: unsafe extern "C" fn(
        model: *const pg_model,
        name: *const c_char,
        entry: *mut u32,
        error: *mut pg_error,
    ) -> pg_status,
    /// How many Variables an entry has; 0 for an entry that does not exist.
    pub variable_count: unsafe extern "C" fn(model: *const pg_model, entry: u32) -> u32,
    /// A Variable of an entry.
    pub variable: unsafe extern "C" fn(
        model: *const pg_model,
        entry: u32,
        index: u32,
        variable: *mut pg_variable,
        error: *mut pg_error,
    ) -> pg_status,
    /// How many tensors an entry has in a role. PG_VALUE: of the model, whatever the entry.
    pub tensor_count: unsafe extern "C" fn(model: *const pg_model, entry: u32, role: pg_role) -> u32,
    /// The description of a tensor.
    pub tensor: unsafe extern "C" fn(
        model: *const pg_model,
        entry: u32,
        role: pg_role,
        index: u32,
        tensor: *mut pg_tensor,
        error: *mut pg_error,
    ) -> pg_status,
    /// The index of the tensor of a name.
    pub find_tensor: unsafe extern "C" fn(
        model: *const pg_model,
        entry: u32,
        role: pg_role,
        name: *const c_char,
        index: *mut u32,
        error: *mut pg_error,
    ) -> pg_status,
    /// Write an input, or a parameter or state. An input whose shape has Variables may have fewer
    /// bytes; run compares them with the Variables' values. Others have nbytes of their
    /// description.
    pub write: unsafe extern "C" fn(
        model: *mut pg_model,
        entry: u32,
        role: pg_role,
        index: u32,
        data: *const c_void,
        nbytes: u64,
        error: *mut pg_error,
    ) -> pg_status,
    /// Copy the first nbytes of a tensor.
    pub read: unsafe extern "C" fn(
        model: *mut pg_model,
        entry: u32,
        role: pg_role,
        index: u32,
        data: *mut c_void,
        nbytes: u64,
        error: *mut pg_error,
    ) -> pg_status,
    /// The memory of a tensor in the model, aligned to 64 bytes (to an element for weights of a
    /// mapped file), which may be read and written between runs. An input counts as written with
    /// all its bytes from then on.
    pub view: unsafe extern "C" fn(
        model: *mut pg_model,
        entry: u32,
        role: pg_role,
        index: u32,
        data: *mut *mut c_void,
        error: *mut pg_error,
    ) -> pg_status,
    /// The shape of a tensor with these values of the entry's Variables.
    pub shape: unsafe extern "C" fn(
        model: *const pg_model,
        entry: u32,
        role: pg_role,
        index: u32,
        variables: *const i64,
        shape: *mut i64,
        error: *mut pg_error,
    ) -> pg_status,
    /// Run an entry on what its inputs hold. A training step writes the new state. The first run of
    /// an entry compiles its code.
    pub run: unsafe extern "C" fn(
        model: *mut pg_model,
        entry: u32,
        variables: *const i64,
        timeout: f64,
        error: *mut pg_error,
    ) -> pg_status,
    /// End the run of a model that was opened with PG_STOPPABLE, from any thread, also from a
    /// signal's handler. It does nothing if none is running.
    pub interrupt: unsafe extern "C" fn(model: *mut pg_model) -> pg_status,
    /// Take all parameters and states from a safetensors file, which has exactly these.
    pub load_values:
        unsafe extern "C" fn(model: *mut pg_model, path: *const c_char, error: *mut pg_error) -> pg_status,
    /// Take all parameters and states from the bytes of a safetensors file, which has exactly
    /// these.
    pub load_values_memory: unsafe extern "C" fn(
        model: *mut pg_model,
        data: *const c_void,
        nbytes: u64,
        error: *mut pg_error,
    ) -> pg_status,
    /// Write all parameters and states to a safetensors file, which replaces the one of that path
    /// when it is whole.
    pub save_values:
        unsafe extern "C" fn(model: *mut pg_model, path: *const c_char, error: *mut pg_error) -> pg_status,
    /// The bytes of the file that save_values writes.
    pub values_size: unsafe extern "C" fn(model: *const pg_model) -> u64,
    /// Write the bytes of the file that save_values writes.
    pub save_values_memory: unsafe extern "C" fn(
        model: *mut pg_model,
        data: *mut c_void,
        nbytes: u64,
        error: *mut pg_error,
    ) -> pg_status,
}

/// What kind of error it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// There is no libpolygrad where it was looked for, or one that is older than this crate.
    NoLibrary,
    /// An argument is not what the function takes.
    Argument,
    /// A file cannot be opened, read or written.
    Io,
    /// The bytes are another kind of file.
    Format,
    /// The file has a version that this library does not read.
    Version,
    /// A part of the file has another SHA-256 than its header says.
    Digest,
    /// The file contradicts itself, or exceeds a limit.
    Damaged,
    /// The file has native code: pass PG_TRUST_NATIVE if you trust who made it.
    Trust,
    /// The file is for a device that this library does not run.
    Unsupported,
    /// There is no room, or max_bytes is exceeded.
    Memory,
    /// There is no wasmtime where it was looked for, or one that does not fit.
    NoEngine,
    /// A kernel does not compile or load.
    Compile,
    /// A kernel trapped. State that the run writes is as it was before, or has to be written anew.
    Trap,
    /// An input or a value has another size than its shape says.
    Shape,
    /// Another thread is using the model.
    Busy,
    /// interrupt ended the run. State is as it was before.
    Interrupted,
    /// The run took longer than its timeout and was ended. State is as it was before.
    Timeout,
    /// A trap left state half-written: write or load all parameters and states first.
    HalfWritten,
    /// There is nothing of that name or number.
    NotFound,
    /// An error that this crate does not know.
    Other,
}

impl ErrorKind {
    pub(crate) fn of(number: pg_status) -> ErrorKind {
        match number {
            PG_ARGUMENT => ErrorKind::Argument,
            PG_IO => ErrorKind::Io,
            PG_FORMAT => ErrorKind::Format,
            PG_VERSION => ErrorKind::Version,
            PG_DIGEST => ErrorKind::Digest,
            PG_DAMAGED => ErrorKind::Damaged,
            PG_TRUST => ErrorKind::Trust,
            PG_UNSUPPORTED => ErrorKind::Unsupported,
            PG_MEMORY => ErrorKind::Memory,
            PG_NO_ENGINE => ErrorKind::NoEngine,
            PG_COMPILE => ErrorKind::Compile,
            PG_TRAP => ErrorKind::Trap,
            PG_SHAPE => ErrorKind::Shape,
            PG_BUSY => ErrorKind::Busy,
            PG_INTERRUPTED => ErrorKind::Interrupted,
            PG_TIMEOUT => ErrorKind::Timeout,
            PG_HALF_WRITTEN => ErrorKind::HalfWritten,
            PG_NOT_FOUND => ErrorKind::NotFound,
            _ => ErrorKind::Other,
        }
    }
}

/// The type of a tensor's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DType {
    /// One byte, 0 or 1.
    Bool,
    Int8,
    Uint8,
    Int16,
    Uint16,
    Int32,
    Uint32,
    Int64,
    Uint64,
    Fp8E4M3,
    Fp8E5M2,
    Float16,
    Bfloat16,
    Float32,
    Float64,
    /// One that this crate does not know.
    Other,
}

impl DType {
    pub(crate) fn of(number: pg_dtype) -> DType {
        match number {
            PG_BOOL => DType::Bool,
            PG_INT8 => DType::Int8,
            PG_UINT8 => DType::Uint8,
            PG_INT16 => DType::Int16,
            PG_UINT16 => DType::Uint16,
            PG_INT32 => DType::Int32,
            PG_UINT32 => DType::Uint32,
            PG_INT64 => DType::Int64,
            PG_UINT64 => DType::Uint64,
            PG_FP8E4M3 => DType::Fp8E4M3,
            PG_FP8E5M2 => DType::Fp8E5M2,
            PG_FLOAT16 => DType::Float16,
            PG_BFLOAT16 => DType::Bfloat16,
            PG_FLOAT32 => DType::Float32,
            PG_FLOAT64 => DType::Float64,
            _ => DType::Other,
        }
    }
}
