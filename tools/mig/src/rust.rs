//! What both kinds of stubs in Rust are written with.

use crate::diagnostic::Diagnostic;
use proc_macro2::{Ident, Literal, Span, TokenStream};
use quote::{format_ident, quote};

/// A file of Rust.
///
/// # Errors
/// The text is not valid.
pub(crate) fn file(name: &str, tokens: TokenStream) -> Result<String, Diagnostic> {
    let header = format!("// Written by mig from the definition of `{name}`. Do not edit.\n\n");
    match syn::parse2(tokens) {
        Ok(file) => Ok(header + &prettyplease::unparse(&file)),
        Err(error) => {
            Err(Diagnostic::error(Default::default(), format!("the Rust code of `{name}`: {error}")))
        }
    }
}

/// Columns of a comment, so that a line of documentation fits the tree's 100 where it is indented.
const COLUMNS: usize = 92;

/// A comment as documentation. Lines that are too long are broken.
pub(crate) fn document(comment: &str) -> TokenStream {
    let mut lines: Vec<String> = Vec::new();
    for line in comment.lines() {
        lines.push(String::new());
        for word in line.split_inclusive(' ') {
            let last = lines.len() - 1;
            if !lines[last].is_empty() && lines[last].len() + word.trim_end().len() > COLUMNS {
                lines.push(String::new());
            }
            let last = lines.len() - 1;
            lines[last].push_str(word);
        }
    }
    let lines = lines.iter().map(|line| format!(" {}", line.trim_end()));
    if comment.is_empty() { quote!() } else { quote!(#(#[doc = #lines])*) }
}

/// An identifier of Rust. Names that Rust keeps for itself get an underscore.
pub(crate) fn ident(name: &str) -> Ident {
    match syn::parse_str::<Ident>(name) {
        Ok(ident) => ident,
        Err(_) => Ident::new(&format!("{name}_"), Span::call_site()),
    }
}

/// The name of a constant.
pub(crate) fn constant(name: &str) -> Ident {
    ident(&name.to_ascii_uppercase())
}

/// The number type of so many bytes.
pub(crate) fn number(bytes: u64) -> Ident {
    format_ident!("u{}", bytes * 8)
}

/// A number without its type.
pub(crate) fn literal(value: u64) -> Literal {
    Literal::u64_unsuffixed(value)
}
