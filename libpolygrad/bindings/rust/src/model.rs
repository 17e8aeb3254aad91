//! A file in memory, and what a run of it gives.

use std::cell::Cell;
use std::ffi::CString;
use std::marker::PhantomData;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::Arc;
use std::time::Duration;

use crate::declarations::*;
use crate::error::{checked, Error, Result};
use crate::inputs::{bytes_of, resolve, wrong_type, Input};
use crate::library;
use crate::tensor::{owned, Element, TensorInfo, Variable};

/// How a file is opened. The default trusts nothing and limits nothing.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Whether to trust the file: native code of it may do whatever this process may.
    pub native: bool,
    /// Whether timeouts and an [`Interrupter`] end runs, which take longer then.
    pub stoppable: bool,
    /// Whether the caller knows that the file is whole: digests of weights are not computed then.
    pub trust_digests: bool,
    /// The most threads of a run of native code; 0 stands for 1.
    pub threads: u32,
    /// The most bytes of memory for buffers and weights; 0: no limit.
    pub max_bytes: u64,
    /// Wasmtime's shared library, instead of the one that libpolygrad finds.
    pub wasmtime: Option<PathBuf>,
}

/// A Program of the file. An exported step is one, whose name is empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub name: String,
    pub inputs: Vec<TensorInfo>,
    pub outputs: Vec<TensorInfo>,
    pub variables: Vec<Variable>,
}

/// An exported file in memory: its code, parameters and state. What a run writes to state stays in it,
/// so an exported training step trains it.
///
/// A model is used by one thread at a time: it is `Send`, and not `Sync`. A `Mutex<Model>` shares it.
///
/// ```compile_fail,E0277
/// fn shared<T: Sync>() {}
/// shared::<polygrad::Model>();
/// ```
///
/// Outputs are views, so the next run waits until they are gone:
///
/// ```compile_fail,E0499
/// fn twice(model: &mut polygrad::Model) -> polygrad::Result<f32> {
///     let first = model.run(&[])?;
///     let second = model.run(&[])?;
///     first.item::<f32>("loss")
/// }
/// ```
pub struct Model {
    handle: Arc<Handle>,
    entries: Vec<Entry>,
    values: Vec<TensorInfo>,
    not_sync: PhantomData<Cell<()>>,
}

/// Ends the run of a model that was opened as `stoppable`, from any thread, also from a signal's handler.
#[derive(Clone)]
pub struct Interrupter {
    handle: Arc<Handle>,
}

/// What a run has written. It borrows the model, whose next run writes it anew.
pub struct Outputs<'m> {
    model: &'m Model,
    entry: usize,
    variables: Vec<Option<i64>>,
}

struct Handle {
    api: &'static pg_api,
    model: NonNull<pg_model>,
}

// Safety: a model may be used by any thread. Threads that share a handle only call `interrupt`, which any
// thread may: `Model` is not `Sync`.
unsafe impl Send for Handle {}
unsafe impl Sync for Handle {}

impl Drop for Handle {
    fn drop(&mut self) {
        // Safety: this was the last reference, so no call is running and none will come.
        unsafe { (self.api.close)(self.model.as_ptr()) }
    }
}

impl Model {
    /// Open an exported file, which must not be changed while the model is there. Its code is WebAssembly.
    pub fn open(path: impl AsRef<Path>) -> Result<Model> {
        Model::open_with(path, &Options::default())
    }

    /// Open an exported file, which must not be changed while the model is there.
    pub fn open_with(path: impl AsRef<Path>, options: &Options) -> Result<Model> {
        let path = c_path(path.as_ref())?;
        Model::opened(options, |api, options, model, error| unsafe {
            (api.open_path)(path.as_ptr(), options, model, error)
        })
    }

    /// Open an exported file in memory, which is not needed afterwards.
    pub fn from_bytes(bytes: &[u8], options: &Options) -> Result<Model> {
        Model::opened(options, |api, options, model, error| unsafe {
            (api.open_memory)(bytes.as_ptr().cast(), bytes.len() as u64, options, model, error)
        })
    }

    fn opened(
        options: &Options,
        open: impl FnOnce(&pg_api, *const pg_options, *mut *mut pg_model, *mut pg_error) -> pg_status,
    ) -> Result<Model> {
        let api = library::api()?;
        let wasmtime = options.wasmtime.as_deref().map(c_path).transpose()?;
        let flags = [
            (options.native, PG_TRUST_NATIVE),
            (options.stoppable, PG_STOPPABLE),
            (options.trust_digests, PG_TRUST_DIGESTS),
        ];
        let c_options = pg_options {
            flags: flags.iter().filter(|(given, _)| *given).map(|(_, flag)| flag).sum(),
            threads: options.threads,
            max_bytes: options.max_bytes,
            wasmtime: wasmtime.as_ref().map_or(ptr::null(), |path| path.as_ptr()),
            reserved: [0; 4],
        };
        let mut model = ptr::null_mut();
        checked(|error| open(api, &c_options, &mut model, error))?;
        let model = NonNull::new(model).expect("libpolygrad opened a model");
        let handle = Arc::new(Handle { api, model });
        let values = handle.tensors(0, PG_VALUE)?;
        // Safety: the model is open, here and below.
        let count = unsafe { (api.entry_count)(handle.model.as_ptr()) };
        let entries = (0..count).map(|entry| handle.entry(entry)).collect::<Result<_>>()?;
        Ok(Model { handle, entries, values, not_sync: PhantomData })
    }

    /// The device that the file was exported for, such as "WASM".
    pub fn device(&self) -> String {
        unsafe { owned((self.handle.api.device)(self.handle.raw())) }
    }

    /// What the entries are for, such as "text-generation"; "" for an exported step.
    pub fn kind(&self) -> String {
        unsafe { owned((self.handle.api.kind)(self.handle.raw())) }
    }

    /// The settings of the file, a JSON object.
    pub fn settings(&self) -> String {
        unsafe { owned((self.handle.api.settings)(self.handle.raw())) }
    }

    /// The Programs of the file, which share parameters and state.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The inputs of the first entry, the only one of an exported step.
    pub fn inputs(&self) -> &[TensorInfo] {
        &self.entries[0].inputs
    }

    /// The outputs of the first entry.
    pub fn outputs(&self) -> &[TensorInfo] {
        &self.entries[0].outputs
    }

    /// The parameters and states of the model.
    pub fn values(&self) -> &[TensorInfo] {
        &self.values
    }

    /// Run the first entry on inputs by name. A training step writes the new state.
    pub fn run(&mut self, inputs: &[(&str, Input<'_>)]) -> Result<Outputs<'_>> {
        self.run_index(0, inputs, None)
    }

    /// Run the first entry, and end it after a time: then state is as it was before. The model has to be
    /// opened as `stoppable`.
    pub fn run_timeout(&mut self, inputs: &[(&str, Input<'_>)], timeout: Duration) -> Result<Outputs<'_>> {
        self.run_index(0, inputs, Some(timeout))
    }

    /// Run the entry of a name.
    pub fn run_entry(&mut self, name: &str, inputs: &[(&str, Input<'_>)]) -> Result<Outputs<'_>> {
        let entry = self.entries.iter().position(|entry| entry.name == name);
        let entry = entry.ok_or_else(|| not_found("entry", name, self.entries.iter().map(|e| &e.name)))?;
        self.run_index(entry, inputs, None)
    }

    fn run_index(
        &mut self,
        entry: usize,
        inputs: &[(&str, Input<'_>)],
        timeout: Option<Duration>,
    ) -> Result<Outputs<'_>> {
        let (elements, variables) = resolve(&self.entries[entry], inputs)?;
        for (index, bytes) in elements.into_iter().enumerate() {
            self.handle.write(entry, PG_INPUT, index, bytes)?;
        }
        let seconds = timeout.map_or(0.0, |time| time.as_secs_f64().max(f64::MIN_POSITIVE));
        // Safety: there is a value for each Variable.
        checked(|error| unsafe {
            (self.handle.api.run)(self.handle.raw(), entry as u32, variables.as_ptr(), seconds, error)
        })?;
        let variables = variables.into_iter().map(Some).collect();
        Ok(Outputs { model: self, entry, variables })
    }

    /// What ends runs of this model from other threads.
    pub fn interrupter(&self) -> Interrupter {
        Interrupter { handle: Arc::clone(&self.handle) }
    }

    /// The elements of a parameter or state, in the model's memory.
    pub fn value<T: Element>(&self, name: &str) -> Result<&[T]> {
        let (index, info) = self.find_value(name)?;
        let data = self.handle.view::<T>(0, PG_VALUE, index, info)?;
        let count = info.nbytes / std::mem::size_of::<T>();
        // Safety: the memory is the model's, and nothing writes it as long as this borrows the model.
        Ok(unsafe { slice::from_raw_parts(data.as_ptr(), count) })
    }

    /// The elements of a parameter or state, in the model's memory, to be written.
    pub fn value_mut<T: Element>(&mut self, name: &str) -> Result<&mut [T]> {
        let (index, info) = self.find_value(name)?;
        let data = self.handle.view::<T>(0, PG_VALUE, index, info)?;
        let count = info.nbytes / std::mem::size_of::<T>();
        // Safety: the memory is the model's, which this borrows alone.
        Ok(unsafe { slice::from_raw_parts_mut(data.as_ptr(), count) })
    }

    /// Let a parameter or state have these elements.
    pub fn set_value<T: Element>(&mut self, name: &str, elements: &[T]) -> Result<()> {
        let (index, info) = self.find_value(name)?;
        if !T::is_of(info.dtype) {
            return Err(wrong_type(info));
        }
        self.handle.write(0, PG_VALUE, index, bytes_of(elements))
    }

    fn find_value(&self, name: &str) -> Result<(usize, &TensorInfo)> {
        let found = self.values.iter().enumerate().find(|(_, info)| info.name == name);
        found.ok_or_else(|| not_found("value", name, self.values.iter().map(|info| &info.name)))
    }

    /// Write all parameters and states to a safetensors file, which replaces the one of that path when it
    /// is whole.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = c_path(path.as_ref())?;
        checked(|error| unsafe { (self.handle.api.save_values)(self.handle.raw(), path.as_ptr(), error) })
    }

    /// The bytes of the file that `save` writes.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let (api, model) = (self.handle.api, self.handle.raw());
        let size = unsafe { (api.values_size)(model) };
        let mut bytes = vec![0; size as usize];
        checked(|error| unsafe { (api.save_values_memory)(model, bytes.as_mut_ptr().cast(), size, error) })?;
        Ok(bytes)
    }

    /// Take all parameters and states from a safetensors file, which has exactly these.
    pub fn load(&mut self, path: impl AsRef<Path>) -> Result<()> {
        let path = c_path(path.as_ref())?;
        checked(|error| unsafe { (self.handle.api.load_values)(self.handle.raw(), path.as_ptr(), error) })
    }

    /// Take all parameters and states from the bytes of a safetensors file.
    pub fn load_bytes(&mut self, bytes: &[u8]) -> Result<()> {
        let (api, model) = (self.handle.api, self.handle.raw());
        checked(|error| unsafe {
            (api.load_values_memory)(model, bytes.as_ptr().cast(), bytes.len() as u64, error)
        })
    }

    /// The bytes of a file in the file, such as a tokenizer.
    pub fn file(&self, name: &str) -> Result<&[u8]> {
        let (api, model) = (self.handle.api, self.handle.raw());
        let mut names = Vec::new();
        for index in 0..unsafe { (api.file_count)(model) } {
            let (mut found, mut data, mut size) = (ptr::null(), ptr::null(), 0);
            checked(|error| unsafe { (api.file)(model, index, &mut found, &mut data, &mut size, error) })?;
            // Safety: name and bytes are the model's until it is closed.
            let found = unsafe { owned(found) };
            if found == name && size > 0 {
                return Ok(unsafe { slice::from_raw_parts(data.cast(), size as usize) });
            } else if found == name {
                return Ok(&[]);
            }
            names.push(found);
        }
        Err(not_found("file", name, names.iter()))
    }
}

impl Interrupter {
    /// End the run, if one is running.
    pub fn interrupt(&self) -> Result<()> {
        // Safety: the handle keeps the model open.
        let status = unsafe { (self.handle.api.interrupt)(self.handle.raw()) };
        if status == PG_OK {
            return Ok(());
        }
        let message = "interrupt: the model was not opened as stoppable";
        Err(Error::new(ErrorKind::of(status), message))
    }
}

impl<'m> Outputs<'m> {
    /// The elements of an output, in the model's memory and in row-major order.
    pub fn get<T: Element>(&self, name: &str) -> Result<&'m [T]> {
        let (index, info) = self.find(name)?;
        let data = self.model.handle.view::<T>(self.entry, PG_OUTPUT, index, info)?;
        let count = self.shape(name)?.iter().product();
        // Safety: the memory is the model's, with room for the greatest shape, and no run writes it as long
        // as this borrows the model.
        Ok(unsafe { slice::from_raw_parts(data.as_ptr(), count) })
    }

    /// The one element of an output, such as a loss.
    pub fn item<T: Element>(&self, name: &str) -> Result<T> {
        match self.get::<T>(name)? {
            [item] => Ok(*item),
            many => {
                let message = format!("{name}: expected one element, got {}", many.len());
                Err(Error::new(ErrorKind::Shape, message))
            }
        }
    }

    /// The shape that an output has with the Variables of this run.
    pub fn shape(&self, name: &str) -> Result<Vec<usize>> {
        let (_, info) = self.find(name)?;
        let sizes: Option<_> = info.shape.iter().map(|axis| axis.value(&self.variables)).collect();
        Ok(sizes.expect("a run has the values of all Variables"))
    }

    fn find(&self, name: &str) -> Result<(usize, &'m TensorInfo)> {
        let outputs = &self.model.entries[self.entry].outputs;
        let found = outputs.iter().enumerate().find(|(_, info)| info.name == name);
        found.ok_or_else(|| not_found("output", name, outputs.iter().map(|info| &info.name)))
    }
}

impl Handle {
    fn raw(&self) -> *mut pg_model {
        self.model.as_ptr()
    }

    fn entry(&self, entry: u32) -> Result<Entry> {
        // Safety: the model is open, and the library writes all of a description.
        let count = unsafe { (self.api.variable_count)(self.raw(), entry) };
        let variables = (0..count).map(|index| {
            let mut variable = pg_variable { name: ptr::null(), lo: 0, hi: 0 };
            checked(|error| unsafe { (self.api.variable)(self.raw(), entry, index, &mut variable, error) })?;
            Ok(unsafe { Variable::of(&variable) })
        });
        Ok(Entry {
            name: unsafe { owned((self.api.entry_name)(self.raw(), entry)) },
            inputs: self.tensors(entry, PG_INPUT)?,
            outputs: self.tensors(entry, PG_OUTPUT)?,
            variables: variables.collect::<Result<_>>()?,
        })
    }

    fn tensors(&self, entry: u32, role: pg_role) -> Result<Vec<TensorInfo>> {
        // Safety: as above.
        let count = unsafe { (self.api.tensor_count)(self.raw(), entry, role) };
        let tensors = (0..count).map(|index| {
            let mut tensor = pg_tensor {
                name: ptr::null(),
                dtype: 0,
                rank: 0,
                shape: ptr::null(),
                variables: ptr::null(),
                nbytes: 0,
                is_state: 0,
            };
            checked(|error| unsafe {
                (self.api.tensor)(self.raw(), entry, role, index, &mut tensor, error)
            })?;
            Ok(unsafe { TensorInfo::of(&tensor) })
        });
        tensors.collect()
    }

    fn write(&self, entry: usize, role: pg_role, index: usize, bytes: &[u8]) -> Result<()> {
        let (data, size) = (bytes.as_ptr().cast(), bytes.len() as u64);
        checked(|error| unsafe {
            (self.api.write)(self.raw(), entry as u32, role, index as u32, data, size, error)
        })
    }

    fn view<T: Element>(
        &self,
        entry: usize,
        role: pg_role,
        index: usize,
        info: &TensorInfo,
    ) -> Result<NonNull<T>> {
        if !T::is_of(info.dtype) {
            return Err(wrong_type(info));
        }
        let mut data = ptr::null_mut();
        checked(|error| unsafe {
            (self.api.view)(self.raw(), entry as u32, role, index as u32, &mut data, error)
        })?;
        // A tensor without elements may have no memory.
        Ok(NonNull::new(data.cast()).unwrap_or(NonNull::dangling()))
    }
}

fn not_found<'a>(what: &str, name: &str, names: impl Iterator<Item = &'a String>) -> Error {
    let names: Vec<&String> = names.collect();
    let message = format!("{what}: expected one of {names:?}, got {name:?}");
    Error::new(ErrorKind::NotFound, message)
}

fn c_path(path: &Path) -> Result<CString> {
    CString::new(path.as_os_str().as_bytes())
        .map_err(|_| Error::new(ErrorKind::Argument, format!("{path:?}: a path has no NUL in it")))
}
