//! Parses tokens into statements. One grammar covers both dialects; the [analysis](crate::analysis)
//! reports statements that the target's dialect does not have.

use crate::ast::{ImportKind, Name, Number, Statement, StatementKind};
use crate::diagnostic::Diagnostic;
use crate::lexer::{Lexer, Token};
use crate::source::{Source, Span};

/// Parses a whole definition. After a statement with an error it goes on with the next statement.
pub fn parse(source: &Source) -> (Vec<Statement>, Vec<Diagnostic>) {
    let mut parser = Parser::new(source);
    let mut statements = Vec::new();
    loop {
        if parser.take(Token::Semicolon).is_some() {
            continue;
        }
        if parser.token == Token::End {
            return (statements, parser.errors);
        }
        let (start, comment) = (parser.span, parser.comment());
        match parser.statement() {
            Ok(kind) => {
                let span = start.to(parser.before);
                statements.push(Statement { kind, span, comment });
                if parser.expect(Token::Semicolon, "`;` at the end of the statement").is_err() {
                    parser.skip_statement();
                }
            }
            Err(Reported) => parser.skip_statement(),
        }
    }
}

/// The value of a failure that the parser's list of diagnostics already describes.
pub(crate) struct Reported;

pub(crate) type Result<T> = std::result::Result<T, Reported>;

/// The deepest nesting of types. The limit protects the stack from nested input.
const DEPTH: usize = 100;

/// A recursive-descent parser with one token of lookahead.
pub(crate) struct Parser<'a> {
    source: &'a Source,
    lexer: Lexer<'a>,
    /// The next token, which has not been consumed.
    pub(crate) token: Token,
    /// The place of the next token.
    pub(crate) span: Span,
    /// The place of the last token that has been consumed.
    pub(crate) before: Span,
    errors: Vec<Diagnostic>,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn new(source: &'a Source) -> Self {
        let mut lexer = Lexer::new(source.text());
        let (token, span) = lexer.next_token();
        Parser { source, lexer, token, span, before: Span::default(), errors: Vec::new(), depth: 0 }
    }

    /// The text of the next token.
    pub(crate) fn text(&self) -> &'a str {
        let source: &'a Source = self.source;
        source.slice(self.span)
    }

    /// Whether the next token is the word `word`, in upper or lower case.
    pub(crate) fn is(&self, word: &str) -> bool {
        self.token == Token::Word && self.text().eq_ignore_ascii_case(word)
    }

    pub(crate) fn advance(&mut self) -> Span {
        self.before = self.span;
        (self.token, self.span) = self.lexer.next_token();
        self.before
    }

    pub(crate) fn take(&mut self, token: Token) -> Option<Span> {
        (self.token == token).then(|| self.advance())
    }

    pub(crate) fn take_word(&mut self, word: &str) -> bool {
        let found = self.is(word);
        if found {
            self.advance();
        }
        found
    }

    pub(crate) fn report(&mut self, error: Diagnostic) -> Reported {
        self.errors.push(error);
        Reported
    }

    /// Reports that the next token is not what the grammar expects.
    pub(crate) fn unexpected(&mut self, expected: &str) -> Reported {
        let found = match self.token {
            Token::End => "the end of the file".to_owned(),
            _ => format!("`{}`", self.text().chars().take(40).collect::<String>()),
        };
        self.report(
            Diagnostic::error(self.span, format!("unexpected {found}"))
                .labelled(format!("expected {expected}")),
        )
    }

    pub(crate) fn expect(&mut self, token: Token, expected: &str) -> Result<Span> {
        self.take(token).ok_or(()).map_err(|()| self.unexpected(expected))
    }

    pub(crate) fn name(&mut self, expected: &str) -> Result<Name> {
        let text = self.text().to_owned();
        let span = self.expect(Token::Word, expected)?;
        Ok(Name { text, span })
    }

    /// Runs `read` one level deeper, or reports an error at the deepest level: the input could
    /// exhaust the stack.
    pub(crate) fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth == DEPTH {
            let message = format!("nested more than {DEPTH} deep");
            return Err(self.report(Diagnostic::error(self.span, message)));
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    fn skip_statement(&mut self) {
        while !matches!(self.token, Token::Semicolon | Token::End) {
            self.advance();
        }
    }

    /// The text of the comment that ends directly before the next token.
    fn comment(&self) -> String {
        let Some(comment) = self.lexer_comment() else { return String::new() };
        let lines = comment.lines().map(|line| line.trim().trim_start_matches('*').trim());
        let lines: Vec<&str> = lines.collect();
        lines.join("\n").trim().to_owned()
    }

    fn lexer_comment(&self) -> Option<&'a str> {
        let comment = self.lexer.comment()?;
        let source: &'a Source = self.source;
        let between = source.text().get(comment.end..self.span.start)?;
        let same_file = source.place(comment.start).file == source.place(self.span.start).file;
        if !between.trim().is_empty() || !same_file {
            return None;
        }
        source.slice(comment).strip_prefix("/*")?.strip_suffix("*/")
    }

    /// Consumes the next word, and returns the raw text from there to the semicolon.
    fn raw(&mut self, expected: &str) -> Result<Name> {
        // The lexer's position is after the lookahead token, so that raw text begins directly after
        // the word.
        let span = self.lexer.raw_until_semicolon();
        let text = self.source.slice(span).to_owned();
        self.advance();
        if text.is_empty() {
            return Err(self.unexpected(expected));
        }
        Ok(Name { text, span })
    }

    fn statement(&mut self) -> Result<StatementKind> {
        let word = self.text().to_ascii_lowercase();
        if self.token != Token::Word {
            return Err(self.unexpected("a statement"));
        }
        // The operand of these statements is raw text up to the semicolon.
        match word.as_str() {
            "import" => return self.import(ImportKind::All),
            "uimport" => return self.import(ImportKind::User),
            "simport" => return self.import(ImportKind::Server),
            "dimport" => return self.import(ImportKind::Definitions),
            "iimport" => return self.import(ImportKind::Internal),
            "rcsid" => return Ok(StatementKind::RcsId(self.raw("a text in quotation marks")?)),
            "msgoption" => return Ok(StatementKind::MessageOption(self.raw("message options")?)),
            "waittime" => return Ok(StatementKind::WaitTime(Some(self.raw("a time")?))),
            "sendtime" => return Ok(StatementKind::SendTime(Some(self.raw("a time")?))),
            _ => {}
        }
        self.advance();
        Ok(match word.as_str() {
            "subsystem" => return self.subsystem(),
            "type" => {
                let name = self.name("the name of the type")?;
                self.expect(Token::Equals, "`=` after the name of the type")?;
                StatementKind::Type { name, expression: self.type_expression()? }
            }
            "routine" => return self.routine(false),
            "simpleroutine" => return self.routine(true),
            "skip" => match self.token {
                Token::Number => StatementKind::Skip(self.number("a number")?.value),
                _ => StatementKind::Skip(1),
            },
            "serverprefix" => StatementKind::ServerPrefix(self.name("a prefix")?),
            "userprefix" => StatementKind::UserPrefix(self.name("a prefix")?),
            "serverdemux" => StatementKind::ServerDemux(self.name("the name of a function")?),
            "nowaittime" => StatementKind::WaitTime(None),
            "nosendtime" => StatementKind::SendTime(None),
            "error" => StatementKind::Error(self.name("the name of a function")?),
            "usertypelimit" => StatementKind::UserTypeLimit(self.number("a number")?.value),
            "onstacklimit" => StatementKind::OnStackLimit(self.number("a number")?.value),
            "usespecialreplyport" => StatementKind::UseSpecialReplyPort(self.number("0 or 1")?.value != 0),
            "consumeonsenderror" => {
                let when = self.name("`None`, `Timeout` or `Any`")?;
                if !["none", "timeout", "any"].contains(&when.text.to_ascii_lowercase().as_str()) {
                    let error = Diagnostic::error(when.span, format!("unexpected `{}`", when.text));
                    return Err(self.report(error.labelled("expected `None`, `Timeout` or `Any`")));
                }
                StatementKind::ConsumeOnSendError(when)
            }
            _ => {
                let error = Diagnostic::error(self.before, format!("unknown statement `{word}`"));
                return Err(self.report(error.labelled(
                    "expected `subsystem`, `type`, `routine`, `simpleroutine`, `skip`, `import` \
                     or another statement",
                )));
            }
        })
    }

    fn import(&mut self, kind: ImportKind) -> Result<StatementKind> {
        let file = self.raw("the name of a file")?;
        let inner = |open, close| file.text.strip_prefix(open).and_then(|text| text.strip_suffix(close));
        let name = inner('<', '>').or(inner('"', '"'));
        if name.is_none_or(|name: &str| name.is_empty() || name.contains(['<', '>', '"', '\n'])) {
            let error = Diagnostic::error(file.span, "this is not the name of a file");
            return Err(self.report(error.labelled("expected `<file>` or `\"file\"`")));
        }
        Ok(StatementKind::Import(kind, file))
    }

    fn subsystem(&mut self) -> Result<StatementKind> {
        let (mut kernel_user, mut kernel_server) = (false, false);
        loop {
            let name = self.name("the name of the subsystem")?;
            // A subsystem may be named `KernelUser`: then its number follows, and not another word.
            if self.token == Token::Word && name.text.eq_ignore_ascii_case("kerneluser") {
                kernel_user = true;
            } else if self.token == Token::Word && name.text.eq_ignore_ascii_case("kernelserver") {
                kernel_server = true;
            } else {
                let base = self.number("the number of the first routine")?;
                return Ok(StatementKind::Subsystem { kernel_user, kernel_server, name, base });
            }
        }
    }

    /// Parses a number in C's notation.
    pub(crate) fn number(&mut self, expected: &str) -> Result<Number> {
        let text = self.text();
        let span = self.expect(Token::Number, expected)?;
        let digits = text.trim_end_matches(['u', 'U', 'l', 'L']);
        let value = match digits.strip_prefix("0x").or(digits.strip_prefix("0X")) {
            Some(digits) => u64::from_str_radix(digits, 16),
            None if digits.len() > 1 && digits.starts_with('0') => u64::from_str_radix(digits, 8),
            None => digits.parse(),
        };
        match value {
            Ok(value) => Ok(Number { value, span }),
            Err(_) => Err(self.report(
                Diagnostic::error(span, format!("`{text}` is no number"))
                    .labelled("expected digits of a number below 2^64"),
            )),
        }
    }

    /// Parses a sum of products and computes its value.
    pub(crate) fn expression(&mut self) -> Result<Number> {
        let mut sum = self.product()?;
        loop {
            let add = match self.token {
                Token::Plus => true,
                Token::Minus => false,
                _ => return Ok(sum),
            };
            self.advance();
            let next = self.product()?;
            let value =
                if add { sum.value.checked_add(next.value) } else { sum.value.checked_sub(next.value) };
            sum = self.in_range(value, sum.span.to(next.span))?;
        }
    }

    fn product(&mut self) -> Result<Number> {
        let mut product = self.factor()?;
        loop {
            let multiply = match self.token {
                Token::Star => true,
                Token::Slash => false,
                _ => return Ok(product),
            };
            self.advance();
            let next = self.factor()?;
            let value = if multiply {
                product.value.checked_mul(next.value)
            } else {
                product.value.checked_div(next.value)
            };
            product = self.in_range(value, product.span.to(next.span))?;
        }
    }

    fn factor(&mut self) -> Result<Number> {
        if let Some(open) = self.take(Token::OpenRound) {
            let inner = self.nested(Self::expression)?;
            let close = self.expect(Token::CloseRound, "`)`")?;
            return Ok(Number { value: inner.value, span: open.to(close) });
        }
        self.number("a number")
    }

    fn in_range(&mut self, value: Option<u64>, span: Span) -> Result<Number> {
        match value {
            Some(value) => Ok(Number { value, span }),
            None => Err(self.report(
                Diagnostic::error(span, "this has no value").labelled("expected a value from 0 to 2^64 - 1"),
            )),
        }
    }
}
