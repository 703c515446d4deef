//! Explains what is wrong with the header of a safetensors file, in the words of the format.

use super::weights::{DTYPES, NOTES};
use safetensors::tensor::Dtype;
use serde_json::Value;

/// Describes the first entry of the header that the format does not allow: what it says, and what was expected. `None`
/// if the header cannot be parsed at all, or each entry by itself is well-formed.
pub(super) fn mistake(file: &[u8]) -> Option<String> {
    let (length, rest) = file.split_first_chunk()?;
    let header = rest.get(..usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
    let entries = match serde_json::from_slice(header).ok()? {
        Value::Object(entries) => entries,
        other => return Some(format!("its header is `{other}`, expected an object of names and tensors")),
    };
    entries.iter().find_map(|(name, entry)| if name == NOTES { of_notes(entry) } else { of_tensor(name, entry) })
}

fn of_notes(notes: &Value) -> Option<String> {
    let is_text = notes.as_object().is_some_and(|notes| notes.values().all(Value::is_string));
    (!is_text && !notes.is_null()).then(|| format!("`{NOTES}` is `{notes}`, expected an object of names and strings"))
}

fn of_tensor(name: &str, entry: &Value) -> Option<String> {
    let sizes = |value: &Value| value.as_array().filter(|sizes| sizes.iter().all(Value::is_u64)).map(Vec::len);
    let is_dtype = |value: &Value| serde_json::from_value::<Dtype>(value.clone()).is_ok();
    type IsValid<'a> = &'a dyn Fn(&Value) -> bool;
    let fields: [(&str, IsValid, String); 3] = [
        ("dtype", &is_dtype, format!("one of {}", dtype_names())),
        ("shape", &|value| sizes(value).is_some(), "a list of whole numbers, none negative".into()),
        ("data_offsets", &|value| sizes(value) == Some(2), "a list of two whole numbers, none negative".into()),
    ];
    fields.into_iter().find_map(|(field, is_valid, expected)| match entry.get(field) {
        None => Some(format!("`{name}` has no `{field}`, expected {expected}")),
        Some(value) if is_valid(value) => None,
        Some(value) => Some(format!("`{field}` of `{name}` is `{value}`, expected {expected}")),
    })
}

fn dtype_names() -> String {
    DTYPES.iter().map(|(_, dtype)| format!("{dtype:?}")).collect::<Vec<_>>().join(", ")
}
