//! Helper functions of both kinds of Rust stubs.

use crate::diagnostic::Diagnostic;
use proc_macro2::{Ident, Literal, Span, TokenStream};
use quote::{format_ident, quote};

/// Formats tokens as the text of a Rust file.
///
/// # Errors
/// The tokens are not valid Rust.
pub(crate) fn file(name: &str, tokens: TokenStream) -> Result<String, Diagnostic> {
    let header = format!("// Written by mig from the definition of `{name}`. Do not edit.\n\n");
    match syn::parse2(tokens) {
        Ok(file) => Ok(header + &prettyplease::unparse(&file)),
        Err(error) => {
            Err(Diagnostic::error(Default::default(), format!("the Rust code of `{name}`: {error}")))
        }
    }
}

/// The most columns of a line of documentation: with its indentation, it must fit in the tree's
/// 100.
const COLUMNS: usize = 92;

/// Documentation with the text of a definition's comment. The lines of a paragraph are filled; a
/// line that begins an item of a list, or is indented, begins a line here, too.
pub(crate) fn document(comment: &str) -> TokenStream {
    let mut lines: Vec<String> = Vec::new();
    let mut fills = false;
    for line in comment.lines() {
        if !fills || line.trim().is_empty() || line.starts_with([' ', '\t', '-', '*']) {
            lines.push(line.chars().take_while(|character| character.is_whitespace()).collect());
        }
        fills = !line.trim().is_empty();
        for word in line.split_whitespace() {
            match lines.last_mut() {
                Some(text) if text.trim().is_empty() => text.push_str(word),
                Some(text) if text.len() + 1 + word.len() <= COLUMNS => *text += &format!(" {word}"),
                _ => lines.push(word.into()),
            }
        }
    }
    let lines = lines.iter().map(|line| format!(" {}", line.trim_end()));
    if comment.is_empty() { quote!() } else { quote!(#(#[doc = #lines])*) }
}

/// A Rust identifier for a name of the definition. Keywords of Rust get an underscore.
pub(crate) fn ident(name: &str) -> Ident {
    match syn::parse_str::<Ident>(name) {
        Ok(ident) => ident,
        Err(_) => Ident::new(&format!("{name}_"), Span::call_site()),
    }
}

/// The identifier of a constant for a name of the definition.
pub(crate) fn constant(name: &str) -> Ident {
    ident(&name.to_ascii_uppercase())
}

/// The unsigned number type of this size in bytes.
pub(crate) fn number(bytes: u64) -> Ident {
    format_ident!("u{}", bytes * 8)
}

/// A literal without a type suffix.
pub(crate) fn literal(value: u64) -> Literal {
    Literal::u64_unsuffixed(value)
}
