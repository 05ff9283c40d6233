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

/// The most columns of a line of documentation: indented, it must fit in the tree's 100.
const COLUMNS: usize = 92;

/// Documentation with the text of a definition's comment. Lines that are too long are broken.
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
