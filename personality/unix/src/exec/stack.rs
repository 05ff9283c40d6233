//! The layout of the stack of a new program (System V ABI for x86-64, 3.4.1): the argument count,
//! the pointers to arguments and environment, and the auxiliary vector, and above them the strings
//! and bytes to which they point.

use super::Arguments;
use crate::{Error, Result};
use alloc::vec::Vec;

/// The strings and bytes that are put onto a new program's stack.
pub struct Contents<'a> {
    /// Arguments of the program.
    pub arguments: &'a Arguments,
    /// Environment of the program.
    pub environment: &'a Arguments,
    /// Path by which the program was executed.
    pub path: &'a [u8],
    /// Name of the processor family (AT_PLATFORM).
    pub platform: &'a [u8],
    /// Random bytes for the program's own use.
    pub random: [u8; 16],
}

/// Addresses of the parts of [`Contents`] on the stack, for the auxiliary vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pointers {
    /// Address of [`Contents::path`], with a terminating zero.
    pub path: u64,
    /// Address of [`Contents::platform`], with a terminating zero.
    pub platform: u64,
    /// Address of [`Contents::random`].
    pub random: u64,
}

/// The stack of a program that is about to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stack {
    /// The stack pointer: address of the first of [`Stack::bytes`], a multiple of 16.
    pub pointer: u64,
    /// The bytes from the stack pointer to the stack's end.
    pub bytes: Vec<u8>,
    /// Addresses of the arguments' strings: first byte and end.
    pub arguments: core::ops::Range<u64>,
    /// Addresses of the environment's strings: first byte and end.
    pub environment: core::ops::Range<u64>,
}

/// Lays out a stack that ends at `top` (a multiple of 16). `auxiliary` makes the auxiliary vector,
/// without its terminating pair of zeros. `ENOMEM` without memory.
pub fn build(
    top: u64,
    contents: &Contents,
    auxiliary: impl FnOnce(&Pointers) -> Vec<(u64, u64)>,
) -> Result<Stack> {
    // The stack has, from the top down: a null word, the path, environment, arguments, platform,
    // random bytes.
    let path = top - 8 - (contents.path.len() as u64 + 1);
    let environment = path - contents.environment.bytes().len() as u64;
    let arguments = environment - contents.arguments.bytes().len() as u64;
    let platform = (arguments - (contents.platform.len() as u64 + 1)) & !15;
    let random = platform - 16;
    let vector = auxiliary(&Pointers { path, platform, random });
    let words = 1 + contents.arguments.len() + 1 + contents.environment.len() + 1 + 2 * (vector.len() + 1);
    let pointer = (random - 8 * words as u64) & !15;

    let mut bytes = Vec::new();
    bytes.try_reserve_exact((top - pointer) as usize).map_err(|_| Error::ENOMEM)?;
    let mut word = |value: u64| bytes.extend_from_slice(&value.to_le_bytes());
    word(contents.arguments.len() as u64);
    for (list, start) in [(contents.arguments, arguments), (contents.environment, environment)] {
        let mut at = start;
        for string in list.iter() {
            word(at);
            at += string.len() as u64 + 1;
        }
        word(0);
    }
    for (kind, value) in vector {
        word(kind);
        word(value);
    }
    word(0);
    word(0);
    let mut place = |address: u64, part: &[u8]| {
        bytes.resize((address - pointer) as usize, 0);
        bytes.extend_from_slice(part);
    };
    place(random, &contents.random);
    place(platform, contents.platform);
    place(arguments, contents.arguments.bytes());
    place(environment, contents.environment.bytes());
    place(path, contents.path);
    place(top, &[]);
    Ok(Stack { pointer, bytes, arguments: arguments..environment, environment: environment..path })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stack_has_the_layout_of_the_abi() {
        let (mut arguments, mut environment) = (Arguments::new(), Arguments::new());
        arguments.push(b"prog").unwrap();
        arguments.push(b"x").unwrap();
        environment.push(b"A=1").unwrap();
        let contents = Contents {
            arguments: &arguments,
            environment: &environment,
            path: b"/bin/prog",
            platform: b"x86_64",
            random: [7; 16],
        };
        let top = 0x7fff_0000;
        let stack =
            build(top, &contents, |pointers| vec![(25, pointers.random), (31, pointers.path)]).unwrap();
        assert_eq!(stack.pointer % 16, 0);
        assert_eq!(stack.pointer + stack.bytes.len() as u64, top);
        let word = |index: usize| u64::from_le_bytes(stack.bytes[8 * index..][..8].try_into().unwrap());
        let string = |address: u64| {
            let bytes = &stack.bytes[(address - stack.pointer) as usize..];
            &bytes[..bytes.iter().position(|byte| *byte == 0).unwrap()]
        };
        assert_eq!(word(0), 2);
        assert_eq!((string(word(1)), string(word(2)), word(3)), (&b"prog"[..], &b"x"[..], 0));
        assert_eq!((string(word(4)), word(5)), (&b"A=1"[..], 0));
        assert_eq!((word(6), word(8)), (25, 31));
        assert_eq!(stack.bytes[(word(7) - stack.pointer) as usize..][..16], [7; 16]);
        assert_eq!(string(word(9)), b"/bin/prog");
        assert_eq!((word(10), word(11)), (0, 0));
        assert_eq!(
            (stack.arguments.clone(), string(stack.environment.start)),
            (word(1)..word(4), &b"A=1"[..])
        );
    }
}
