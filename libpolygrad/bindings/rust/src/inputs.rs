//! What a run is given: elements of tensors, and Variables, which the shapes of inputs may tell.

use std::slice;

use crate::declarations::{DType, ErrorKind};
use crate::error::{Error, Result};
use crate::model::Entry;
use crate::tensor::{Element, Size, TensorInfo};

/// An input of a run: the elements of a tensor, in row-major order, or the value of a Variable.
///
/// A slice (`(&images).into()`, `images[..640].into()`) has the shape of the input's description; if one
/// axis of it is a Variable, the number of elements tells its value. [`Input::shaped`] says a shape.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    value: Value<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Value<'a> {
    Variable(i64),
    Tensor { bytes: &'a [u8], count: usize, is_of: fn(DType) -> bool, shape: Option<&'a [usize]> },
}

impl<'a> Input<'a> {
    /// Elements of a tensor of this shape.
    pub fn shaped<T: Element>(elements: &'a [T], shape: &'a [usize]) -> Input<'a> {
        Input::of(elements, Some(shape))
    }

    fn of<T: Element>(elements: &'a [T], shape: Option<&'a [usize]>) -> Input<'a> {
        let value =
            Value::Tensor { bytes: bytes_of(elements), count: elements.len(), is_of: T::is_of, shape };
        Input { value }
    }
}

impl<'a, T: Element> From<&'a [T]> for Input<'a> {
    fn from(elements: &'a [T]) -> Input<'a> {
        Input::of(elements, None)
    }
}

impl<'a, T: Element> From<&'a Vec<T>> for Input<'a> {
    fn from(elements: &'a Vec<T>) -> Input<'a> {
        Input::of(elements, None)
    }
}

impl<'a, T: Element, const N: usize> From<&'a [T; N]> for Input<'a> {
    fn from(elements: &'a [T; N]) -> Input<'a> {
        Input::of(elements, None)
    }
}

impl From<i64> for Input<'_> {
    fn from(value: i64) -> Self {
        let value = Value::Variable(value);
        Input { value }
    }
}

pub(crate) fn bytes_of<T: Element>(elements: &[T]) -> &[u8] {
    // Safety: elements are numbers without padding.
    unsafe { slice::from_raw_parts(elements.as_ptr().cast(), std::mem::size_of_val(elements)) }
}

/// The bytes of each input of an entry, and the values of its Variables.
pub(crate) fn resolve<'a>(entry: &Entry, given: &[(&str, Input<'a>)]) -> Result<(Vec<&'a [u8]>, Vec<i64>)> {
    let mut variables = vec![None; entry.variables.len()];
    for (name, input) in given {
        let is_input = entry.inputs.iter().any(|info| info.name == *name);
        let variable = entry.variables.iter().position(|v| v.name == *name);
        match (input.value, variable) {
            (Value::Tensor { .. }, _) if is_input => {}
            (Value::Variable(value), Some(index)) => variables[index] = Some(value),
            _ => return Err(wrong_names(entry, given)),
        }
    }
    let mut tensors = Vec::new();
    for info in &entry.inputs {
        let input = given.iter().find(|(name, _)| *name == info.name);
        match input.map(|(_, input)| input.value) {
            Some(Value::Tensor { bytes, count, is_of, shape }) if is_of(info.dtype) => {
                tensors.push((info, bytes, count, shape));
            }
            Some(_) => return Err(wrong_type(info)),
            None => return Err(wrong_names(entry, given)),
        }
    }
    for &(info, _, count, shape) in &tensors {
        if let Some(shape) = shape {
            bind_shape(info, shape, count, &mut variables)?;
        }
    }
    for &(info, _, count, _) in &tensors {
        bind_count(info, count, &mut variables)?;
    }
    let values: Option<Vec<i64>> = variables.into_iter().collect();
    let values = values.ok_or_else(|| wrong_names(entry, given))?;
    Ok((tensors.iter().map(|&(_, bytes, _, _)| bytes).collect(), values))
}

/// Let Variables be the sizes of a shape.
fn bind_shape(info: &TensorInfo, shape: &[usize], count: usize, variables: &mut [Option<i64>]) -> Result<()> {
    let mut fits = shape.len() == info.shape.len() && product(shape.iter().copied()) == Some(count);
    for (axis, &size) in info.shape.iter().zip(shape) {
        fits &= match *axis {
            Size::Fixed(wanted) => wanted == size,
            Size::Variable(index) => *variables[index].get_or_insert(size as i64) == size as i64,
        };
    }
    if fits {
        Ok(())
    } else {
        Err(wrong_shape(info, &format!("{shape:?} with {count} elements")))
    }
}

/// Let the one Variable that is not known be what the number of elements says, and compare this number.
fn bind_count(info: &TensorInfo, count: usize, variables: &mut [Option<i64>]) -> Result<()> {
    let unknown = info.shape.iter().find_map(|axis| match *axis {
        Size::Variable(index) if variables[index].is_none() => Some(index),
        _ => None,
    });
    if let Some(index) = unknown {
        let others = info.shape.iter().filter(|axis| **axis != Size::Variable(index));
        let known = others.map(|axis| axis.value(variables));
        variables[index] = match known.collect::<Option<Vec<usize>>>().and_then(|s| product(s.into_iter())) {
            Some(known) if known > 0 => Some((count / known) as i64),
            _ => return Err(wrong_shape(info, &format!("{count} elements: give their shape"))),
        };
    }
    let sizes: Option<Vec<usize>> = info.shape.iter().map(|axis| axis.value(variables)).collect();
    if sizes.and_then(|sizes| product(sizes.into_iter())) == Some(count) {
        Ok(())
    } else {
        Err(wrong_shape(info, &format!("{count} elements")))
    }
}

fn product(mut sizes: impl Iterator<Item = usize>) -> Option<usize> {
    sizes.try_fold(1usize, |n, size| n.checked_mul(size))
}

fn wrong_names(entry: &Entry, given: &[(&str, Input<'_>)]) -> Error {
    let inputs = entry.inputs.iter().map(|info| info.name.as_str());
    let variables = entry.variables.iter().map(|variable| variable.name.as_str());
    let expected: Vec<&str> = inputs.chain(variables).collect();
    let got: Vec<&str> = given.iter().map(|(name, _)| *name).collect();
    let message = format!("run: expected the inputs {expected:?}, got {got:?}");
    Error::new(ErrorKind::Argument, message)
}

fn wrong_shape(info: &TensorInfo, got: &str) -> Error {
    let message = format!("{}: expected shape {:?}, got {got}", info.name, info.shape);
    Error::new(ErrorKind::Shape, message)
}

pub(crate) fn wrong_type(info: &TensorInfo) -> Error {
    let message = format!("{}: expected elements of {:?}, got another type", info.name, info.dtype);
    Error::new(ErrorKind::Argument, message)
}
