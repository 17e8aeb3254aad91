//! Errors: what kind, and the library's message.

use std::ffi::CStr;
use std::fmt;

use crate::declarations::{pg_error, pg_status, ErrorKind, PG_OK};

pub type Result<T> = std::result::Result<T, Error>;

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    message: String,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        let message = message.into();
        Error { kind, message }
    }

    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

/// The result of a call of the library, which gets the place for its error.
pub(crate) fn checked(call: impl FnOnce(*mut pg_error) -> pg_status) -> Result<()> {
    let mut error = pg_error { status: PG_OK, message: [0; 508] };
    let status = call(&mut error);
    if status == PG_OK {
        return Ok(());
    }
    // Safety: the library ends the message with a NUL.
    let message = unsafe { CStr::from_ptr(error.message.as_ptr()) };
    Err(Error::new(ErrorKind::of(status), message.to_string_lossy()))
}
