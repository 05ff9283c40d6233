//! Parses types, and the arguments of routines.

use crate::ast::{
    Argument, Direction, Flag, FlagKind, Member, Name, Specification, StatementKind, Translation,
    TypeExpression,
};
use crate::diagnostic::Diagnostic;
use crate::ipc_type::IpcType;
use crate::lexer::Token;
use crate::parser::{Parser, Result};

const SPECIFICATION: &str = "a type: a name, `MACH_MSG_TYPE_...`, `array`, `struct`, `c_string`, `^` or `(`";

impl Parser<'_> {
    /// Parses a type with its translations.
    pub(crate) fn type_expression(&mut self) -> Result<TypeExpression> {
        let start = self.span;
        let specification = self.specification()?;
        let mut translations = Vec::new();
        while self.token == Token::Word {
            translations.push(self.translation()?);
        }
        Ok(TypeExpression { specification, translations, span: start.to(self.before) })
    }

    fn translation(&mut self) -> Result<Translation> {
        let keyword = self.text().to_ascii_lowercase();
        let expected = "`;`, or a translation: `intran:`, `outtran:`, `destructor:`, `ctype:`, \
                        `cusertype:`, `cservertype:` or `intranpayload:`";
        let known = ["intran", "outtran", "destructor", "ctype", "cusertype", "cservertype", "intranpayload"];
        if !known.contains(&keyword.as_str()) {
            return Err(self.unexpected(expected));
        }
        self.advance();
        self.expect(Token::Colon, "`:`")?;
        let first = self.name("a name")?;
        Ok(match keyword.as_str() {
            "ctype" => Translation::CType(first),
            "cusertype" => Translation::UserType(first),
            "cservertype" => Translation::ServerType(first),
            "destructor" => Translation::Destructor { function: first, of: self.in_brackets()? },
            "intranpayload" => {
                Translation::Payload { to: first, function: self.name("the name of a function")? }
            }
            direction => {
                let function = self.name("the name of a function")?;
                let from = self.in_brackets()?;
                match direction {
                    "intran" => Translation::In { to: first, function, from },
                    _ => Translation::Out { to: first, function, from },
                }
            }
        })
    }

    fn in_brackets(&mut self) -> Result<Name> {
        self.expect(Token::OpenRound, "`(` and the function's argument type")?;
        let name = self.name("a type")?;
        self.expect(Token::CloseRound, "`)`")?;
        Ok(name)
    }

    fn specification(&mut self) -> Result<Specification> {
        self.nested(Self::specification_inside)
    }

    fn specification_inside(&mut self) -> Result<Specification> {
        let start = self.span;
        match self.token {
            Token::Caret => {
                self.advance();
                Ok(Specification::Pointer(Box::new(self.specification()?), start))
            }
            Token::OpenRound => self.long_form(),
            Token::Number => self.ipc_type(),
            Token::Word if self.is("array") => self.array(),
            Token::Word if self.is("struct") => self.structure(),
            Token::Word if self.is("c_string") => self.string(),
            Token::Word if IpcType::by_name(self.text()).is_some() => self.ipc_type(),
            Token::Word if self.text().starts_with("MACH_MSG_TYPE_") => {
                Err(self.unexpected("an IPC type that the kernel knows"))
            }
            Token::Word => {
                let name = self.name(SPECIFICATION)?;
                let native = ["pointerto", "pointertoifnot", "valueof"];
                let lower = name.text.to_ascii_lowercase();
                if self.token == Token::OpenRound && native.contains(&lower.as_str()) {
                    return self.native(name);
                }
                Ok(Specification::Named(name))
            }
            _ => Err(self.unexpected(SPECIFICATION)),
        }
    }

    /// Parses `in` or `in | out`.
    fn ipc_type(&mut self) -> Result<Specification> {
        let start = self.span;
        let (sent, received) = self.primitive()?;
        let received = match self.take(Token::Bar) {
            // A name after the bar stands for a type in received messages.
            Some(_) => self.primitive()?.1,
            None => received,
        };
        Ok(Specification::Ipc { sent, received, long: None, span: start.to(self.before) })
    }

    fn primitive(&mut self) -> Result<(IpcType, IpcType)> {
        if self.token == Token::Number {
            let number = self.number("an IPC type")?;
            return match u8::try_from(number.value) {
                Ok(value) => Ok((IpcType::by_number(value.into()), IpcType::by_number(value.into()))),
                Err(_) => Err(self.report(
                    Diagnostic::error(number.span, "an IPC type has 8 bits")
                        .labelled("expected a number below 256"),
                )),
            };
        }
        let found = if self.token == Token::Word { IpcType::by_name(self.text()) } else { None };
        match found {
            Some(found) => {
                self.advance();
                Ok(found)
            }
            None => Err(self.unexpected("an IPC type: `MACH_MSG_TYPE_...`, `polymorphic` or a number")),
        }
    }

    /// Parses `( type , bits , flags )`.
    fn long_form(&mut self) -> Result<Specification> {
        let start = self.advance();
        let Specification::Ipc { sent, received, .. } = self.ipc_type()? else {
            return Err(self.unexpected(SPECIFICATION));
        };
        self.expect(Token::Comma, "`,` and the bits of an element")?;
        let bits = self.expression()?;
        let flags = self.flags()?;
        let close = self.expect(Token::CloseRound, "`)`")?;
        Ok(Specification::Ipc { sent, received, long: Some((bits, flags)), span: start.to(close) })
    }

    fn array(&mut self) -> Result<Specification> {
        self.advance();
        self.expect(Token::OpenSquare, "`[` after `array`")?;
        if self.take(Token::CloseSquare).is_some() {
            return Ok(Specification::VariableArray { maximum: None, of: self.element()? });
        }
        if self.take(Token::Star).is_some() {
            let maximum = match self.take(Token::Colon) {
                Some(_) => Some(self.expression()?),
                None => None,
            };
            self.expect(Token::CloseSquare, "`]`")?;
            return Ok(Specification::VariableArray { maximum, of: self.element()? });
        }
        let count = self.expression()?;
        self.expect(Token::CloseSquare, "`]`")?;
        Ok(Specification::Array { count, of: self.element()? })
    }

    fn element(&mut self) -> Result<Box<Specification>> {
        if !self.take_word("of") {
            return Err(self.unexpected("`of` and the type of an element"));
        }
        self.specification().map(Box::new)
    }

    fn structure(&mut self) -> Result<Specification> {
        let start = self.advance();
        if self.take(Token::OpenSquare).is_some() {
            let count = self.expression()?;
            self.expect(Token::CloseSquare, "`]`")?;
            return Ok(Specification::StructArray { count, of: self.element()? });
        }
        self.expect(Token::OpenCurly, "`[` or `{` after `struct`")?;
        let mut members = Vec::new();
        loop {
            if let Some(close) = self.take(Token::CloseCurly) {
                return Ok(Specification::Struct { members, span: start.to(close) });
            }
            let of = self.name("the type of a member, or `}`")?;
            let name = self.name("the name of the member")?;
            let count = match self.take(Token::OpenSquare) {
                Some(_) => {
                    let count = self.expression()?;
                    self.expect(Token::CloseSquare, "`]`")?;
                    Some(count)
                }
                None => None,
            };
            self.expect(Token::Semicolon, "`;` after the member")?;
            members.push(Member { of, count, name });
        }
    }

    fn string(&mut self) -> Result<Specification> {
        self.advance();
        self.expect(Token::OpenSquare, "`[` after `c_string`")?;
        let varying = self.take(Token::Star).is_some();
        if varying {
            self.expect(Token::Colon, "`:` and the most bytes of the string")?;
        }
        let size = self.expression()?;
        self.expect(Token::CloseSquare, "`]`")?;
        Ok(Specification::String { size, varying })
    }

    fn native(&mut self, keyword: Name) -> Result<Specification> {
        self.advance();
        let mut phrases = vec![self.phrase()?];
        while self.take(Token::Comma).is_some() {
            phrases.push(self.phrase()?);
        }
        self.expect(Token::CloseRound, "`)`")?;
        let wanted = if keyword.text.eq_ignore_ascii_case("pointertoifnot") { 2 } else { 1 };
        if phrases.len() != wanted {
            let message = format!("`{}` has {wanted} operands, not {}", keyword.text, phrases.len());
            return Err(self.report(Diagnostic::error(keyword.span, message)));
        }
        Ok(Specification::Native(keyword, phrases))
    }

    /// Parses words of C up to a comma or a closing bracket.
    fn phrase(&mut self) -> Result<Name> {
        let start = self.span;
        let mut words = Vec::new();
        while matches!(self.token, Token::Word | Token::Number | Token::Star) {
            words.push(self.text());
            self.advance();
        }
        if words.is_empty() {
            return Err(self.unexpected("a type or a value in C"));
        }
        Ok(Name { text: words.join(" "), span: start.to(self.before) })
    }

    /// Parses `{ , flag [ [] ] }`.
    fn flags(&mut self) -> Result<Vec<Flag>> {
        let mut flags = Vec::new();
        while self.take(Token::Comma).is_some() {
            let kind = if self.token == Token::Word { FlagKind::from_keyword(self.text()) } else { None };
            let Some(kind) = kind else {
                return Err(self.unexpected(
                    "a flag: `dealloc`, `notdealloc`, `servercopy`, `islong`, `isnotlong`, \
                     `countinout`, `samecount`, `physicalcopy`, `overwrite`, `auto`, `const`",
                ));
            };
            let mut span = self.advance();
            let variable = self.token == Token::OpenSquare;
            if variable {
                self.advance();
                span = span.to(self.expect(Token::CloseSquare, "`]`")?);
            }
            flags.push(Flag { kind, variable, span });
        }
        Ok(flags)
    }

    /// Parses the name and the arguments of a routine.
    pub(crate) fn routine(&mut self, simple: bool) -> Result<StatementKind> {
        let name = self.name("the name of the routine")?;
        self.expect(Token::OpenRound, "`(` and the arguments")?;
        let mut arguments = Vec::new();
        if self.take(Token::CloseRound).is_some() {
            return Ok(StatementKind::Routine { simple, name, arguments });
        }
        loop {
            arguments.push(self.argument()?);
            if self.take(Token::CloseRound).is_some() {
                return Ok(StatementKind::Routine { simple, name, arguments });
            }
            self.expect(Token::Semicolon, "`;` and another argument, `,` and a flag, or `)`")?;
        }
    }

    fn argument(&mut self) -> Result<Argument> {
        let first = self.name("an argument")?;
        let (direction, name) = if self.token == Token::Word {
            let Some(direction) = Direction::from_keyword(&first.text) else {
                let error = Diagnostic::error(first.span, format!("unexpected `{}`", first.text));
                return Err(self.report(error.labelled(
                    "expected `:` after an argument's name, or a direction before it: `in`, `out`, \
                     `inout`, `requestport`, `replyport`, ...",
                )));
            };
            (Some((direction, first.span)), self.name("the name of the argument")?)
        } else {
            (None, first)
        };
        self.expect(Token::Colon, "`:` and the argument's type")?;
        let type_name = self.name("the name of the argument's type; it may be followed by `= ...`")?;
        let expression = match self.take(Token::Equals) {
            Some(_) => Some(self.type_expression()?),
            None => None,
        };
        let flags = self.flags()?;
        Ok(Argument { direction, name, type_name, expression, flags })
    }
}
