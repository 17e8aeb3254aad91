//! The shared library: opened once, by the first model.
//!
//! It is opened and not linked, so that the crate is built without it and without a C compiler, and so
//! that a program runs with every library that has the functions that it was built for.

use std::env;
use std::ffi::{CStr, CString, OsString};
use std::os::raw::{c_char, c_int, c_void};
use std::os::unix::ffi::OsStringExt;
use std::sync::OnceLock;

use crate::declarations::{pg_api, ErrorKind, PG_API_VERSION};
use crate::error::{Error, Result};

extern "C" {
    fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
    fn dlerror() -> *const c_char;
}

const RTLD_NOW: c_int = 2; // on Linux, macOS and the BSDs
const NAME: &str = if cfg!(target_os = "macos") { "libpolygrad.dylib" } else { "libpolygrad.so.0" };

/// The table of functions.
pub(crate) fn api() -> Result<&'static pg_api> {
    static API: OnceLock<Result<&'static pg_api>> = OnceLock::new();
    API.get_or_init(open).clone()
}

fn open() -> Result<&'static pg_api> {
    let name = env::var_os("POLYGRAD_LIBRARY").unwrap_or_else(|| OsString::from(NAME));
    let path = CString::new(name.into_vec()).map_err(|_| no_library("POLYGRAD_LIBRARY has a NUL in it"))?;
    // Safety: the path ends with a NUL. The library stays open as long as the process runs.
    let library = unsafe { dlopen(path.as_ptr(), RTLD_NOW) };
    if library.is_null() {
        return Err(no_library(&last_reason()));
    }
    table(library).ok_or_else(|| no_library(&format!("{path:?} is older than this crate")))
}

fn table(library: *mut c_void) -> Option<&'static pg_api> {
    // Safety: pg_get_api is a function of this type in every libpolygrad, and its table is never freed.
    unsafe {
        let function = dlsym(library, b"pg_get_api\0".as_ptr().cast());
        if function.is_null() {
            return None;
        }
        let get: unsafe extern "C" fn(u32) -> *const pg_api = std::mem::transmute(function);
        get(PG_API_VERSION).as_ref()
    }
}

fn last_reason() -> String {
    // Safety: dlerror gives text of this thread, or NULL.
    let text = unsafe { dlerror() };
    if text.is_null() {
        return String::from("unknown reason");
    }
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

fn no_library(reason: &str) -> Error {
    let advice = "install libpolygrad, or let POLYGRAD_LIBRARY be its path";
    Error::new(ErrorKind::NoLibrary, format!("libpolygrad: {reason}: {advice}"))
}
