//! Splits an interface definition into tokens.
//!
//! After keywords such as `import` the rest of a statement is a file's name or an expression in C,
//! which is not made of these tokens: the parser reads it with [`Lexer::raw_until_semicolon`].

use crate::source::Span;
use logos::Logos;

/// A kind of token.
#[derive(Logos, Clone, Copy, Debug, PartialEq, Eq)]
#[logos(skip r"[ \t\r\n\x0b\x0c]+")]
pub enum Token {
    /// A name or keyword.
    #[regex("[A-Za-z_][A-Za-z_0-9]*")]
    Word,
    /// A number: decimal, hexadecimal or octal, as in C.
    #[regex("[0-9][0-9A-Za-z_]*")]
    Number,
    /// Text in quotation marks.
    #[regex("\"[^\"\n]*\"")]
    Quoted,
    /// `;`
    #[token(";")]
    Semicolon,
    /// `:`
    #[token(":")]
    Colon,
    /// `,`
    #[token(",")]
    Comma,
    /// `=`
    #[token("=")]
    Equals,
    /// `(`
    #[token("(")]
    OpenRound,
    /// `)`
    #[token(")")]
    CloseRound,
    /// `[`
    #[token("[")]
    OpenSquare,
    /// `]`
    #[token("]")]
    CloseSquare,
    /// `{`
    #[token("{")]
    OpenCurly,
    /// `}`
    #[token("}")]
    CloseCurly,
    /// `*`
    #[token("*")]
    Star,
    /// `+`
    #[token("+")]
    Plus,
    /// `-`
    #[token("-")]
    Minus,
    /// `/`
    #[token("/")]
    Slash,
    /// `|`
    #[token("|")]
    Bar,
    /// `^`
    #[token("^")]
    Caret,
    /// The beginning of a comment, which is in the text if the preprocessor ran with `-C`.
    #[token("/*")]
    Comment,
    /// A character with which no token begins.
    Unknown,
    /// The end of the text.
    End,
}

/// Takes tokens from a text. It skips comments, and keeps the last one for the parser.
#[derive(Clone, Debug)]
pub struct Lexer<'a> {
    text: &'a str,
    at: usize,
    comment: Option<Span>,
}

impl<'a> Lexer<'a> {
    /// A lexer at the beginning of a text.
    pub fn new(text: &'a str) -> Self {
        Self { text, at: 0, comment: None }
    }

    /// Takes the next token; returns it with its place.
    pub fn next_token(&mut self) -> (Token, Span) {
        loop {
            let mut inner = Token::lexer(&self.text[self.at..]);
            let Some(token) = inner.next() else {
                self.at = self.text.len();
                return (Token::End, Span { start: self.at, end: self.at });
            };
            let span = Span { start: self.at + inner.span().start, end: self.at + inner.span().end };
            self.at = span.end;
            if token != Ok(Token::Comment) {
                return (token.unwrap_or(Token::Unknown), span);
            }
            let Some(length) = self.text[self.at..].find("*/") else {
                self.at = self.text.len();
                return (Token::Unknown, span);
            };
            self.at += length + 2;
            self.comment = Some(Span { end: self.at, ..span });
        }
    }

    /// The place of the last comment before the current position.
    pub fn comment(&self) -> Option<Span> {
        self.comment
    }

    /// The text up to the next `;` that is not in quotation marks, without blanks around it.
    pub fn raw_until_semicolon(&mut self) -> Span {
        let rest = &self.text[self.at..];
        let mut quoted = false;
        let end = rest.bytes().position(|byte| {
            quoted ^= byte == b'"';
            byte == b';' && !quoted
        });
        let raw = &rest[..end.unwrap_or(rest.len())];
        let start = self.at + (raw.len() - raw.trim_start().len());
        self.at += raw.len();
        let end = start + raw.trim().len();
        Span { start: start.min(end), end }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Vec<Token> {
        let mut lexer = Lexer::new(text);
        let next = |lexer: &mut Lexer<'_>| Some(lexer.next_token().0).filter(|&token| token != Token::End);
        std::iter::from_fn(|| next(&mut lexer)).collect()
    }

    #[test]
    fn words_numbers_and_signs_are_told_apart() {
        use Token::*;
        assert_eq!(
            tokens("type a_1=array[*:0x10]"),
            [Word, Word, Equals, Word, OpenSquare, Star, Colon, Number, CloseSquare]
        );
        assert_eq!(tokens("a /* b ; ** */ | \"c d\" ~ é"), [Word, Bar, Quoted, Unknown, Unknown]);
    }

    #[test]
    fn the_rest_of_a_statement_is_taken_as_it_is() {
        let text = "import  <mach/a.h> ; x";
        let mut lexer = Lexer::new(text);
        lexer.next_token();
        let raw = lexer.raw_until_semicolon();
        assert_eq!(&text[raw.start..raw.end], "<mach/a.h>");
        assert_eq!(lexer.next_token().0, Token::Semicolon);
    }
}
