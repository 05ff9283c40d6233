//! Commands and what they print.
use std::string::String;

use super::breakpoints::{self, SetError};
use super::command::{Command, CommandError, HELP, parse};
use super::show;
use crate::arch::{Breakpoint, Crash, Machine, StopAt};
use crate::thread::table::threads;

#[test]
fn commands_have_letters_and_words() {
    assert_eq!(parse("  "), Ok(Command::Nothing));
    assert_eq!(parse("t"), Ok(Command::Threads));
    assert_eq!(parse("thread 0x3a"), Ok(Command::Thread(0x3a)));
    assert_eq!(parse("t 58.1"), Ok(Command::Thread(58)));
    assert_eq!(parse("r 58 0x1000"), Ok(Command::Read(58, 0x1000)));
    assert_eq!(parse("r 58"), Err(CommandError::Missing("the address")));
    assert_eq!(parse("r 58 x"), Err(CommandError::Number("x")));
    assert_eq!(parse("t 0x1ffffffff"), Err(CommandError::Number("0x1ffffffff")));
    assert_eq!(parse("p 58"), Ok(Command::Pages(58, 0)));
    assert_eq!(parse("pt 58"), Err(CommandError::Missing("the address")));
    assert_eq!(parse("crash stack"), Ok(Command::Crash(Crash::Stack)));
    assert_eq!(parse("crash car"), Err(CommandError::Unknown("car")));
    assert_eq!(parse("frobnicate"), Err(CommandError::Unknown("frobnicate")));
}

#[test]
fn help_names_commands_that_exist() {
    for (letter, word, _) in HELP {
        let arguments = |text: &str| text.replace('N', "1").replace('A', "2");
        let word = word.replace("EV", "ipc-*").replace("HOW", "panic");
        let word = arguments(&word);
        let parsed = parse(&word);
        assert!(parsed.is_ok(), "{word}");
        if !letter.is_empty() {
            assert_eq!(parse(&arguments(letter)), parsed);
        }
    }
}

/// Every command prints something sensible of a machine without threads.
#[test]
fn an_empty_machine_can_be_looked_at() {
    let _machine = Machine::new(1 << 20);
    threads().clear();
    crate::mapping::init(&[]);
    let print = |command| {
        let mut text = String::new();
        show::execute(command, &mut text);
        text
    };
    assert!(print(Command::Threads).starts_with("thread "));
    assert_eq!(print(Command::Thread(5)), "there is no thread 5\n");
    assert_eq!(print(Command::Read(5, 0)), "there is no thread 5\n");
    for command in [Command::Pages(5, 0), Command::Entries(5, 0)] {
        assert_eq!(print(command), "there is no thread 5\n");
    }
    assert_eq!(print(Command::Frame(0x1000)), "no space has it from sigma0\n");
    assert!(print(Command::Accounts).contains("none"), "the kernel's own has no limit");
    assert!(print(Command::Memory).contains("KiB free"));
    assert!(print(Command::Queues).contains("running: none"));
    assert!(print(Command::Help).contains("threads"));
}

/// No number that can be typed stops the debugger.
#[test]
fn odd_numbers_and_addresses_are_answered() {
    let world = crate::thread::tests::World::new();
    let spaces = threads().iter().filter(|thread| thread.space().is_some());
    let present = spaces.map(|thread| thread.id().number()).next().expect("the world has threads");
    let edges = [0, 12, 13, 31, 32, 43, 44, 46, 47, 48, 52, 63].into_iter().flat_map(|bit| {
        let power = 1u64 << bit;
        [power - 1, power, power + 1, power.wrapping_neg(), !power]
    });
    let print = |command| {
        let mut text = String::new();
        show::execute(command, &mut text);
        assert!(!text.is_empty(), "{command:?}");
        text
    };
    for edge in edges.chain([0, u64::MAX]) {
        let number = edge as u32;
        for thread in [number, present] {
            for command in
                [Command::Pages(thread, edge), Command::Entries(thread, edge), Command::Read(thread, edge)]
            {
                print(command);
            }
        }
        print(Command::Thread(number));
        if edge >> 44 != 0 {
            assert_eq!(print(Command::Frame(edge)), "no space has it from sigma0\n");
        } else {
            print(Command::Frame(edge));
        }
        breakpoints::clear(edge);
        for at in [StopAt::Execution, StopAt::Write { bytes: 8 }, StopAt::Write { bytes: 0 }] {
            if let Ok(number) = breakpoints::set(Breakpoint { address: edge, at }) {
                assert!(breakpoints::clear(number as u64));
            }
        }
        for line in ["f", "c", "b", "w", "t", "p 1", "pt 1", "r 1", "w 1"] {
            let line = std::format!("{line} {edge:#x}");
            let _ = parse(&line);
            let _ = parse(&std::format!("{line}{edge}"));
        }
    }
    assert!(print(Command::Entries(present, 1 << 47)).starts_with("no processor has"));
    drop(world);
}

#[test]
fn breakpoints_are_set_listed_and_cleared() {
    let code = |address| Breakpoint { address, at: StopAt::Execution };
    let write = |address, bytes| Breakpoint { address, at: StopAt::Write { bytes } };
    assert_eq!(parse("b 0x10"), Ok(Command::Stop(code(0x10))));
    assert_eq!(parse("w 0x10"), Ok(Command::Stop(write(0x10, 8))));
    assert_eq!(parse("w 0x10 2"), Ok(Command::Stop(write(0x10, 2))));
    assert_eq!(parse("w 0x10 256"), Err(CommandError::Number("256")));
    let list = || {
        let mut text = String::new();
        breakpoints::list(&mut text).unwrap();
        text
    };
    assert_eq!(breakpoints::set(write(0x10, 3)), Err(SetError::Shape));
    assert_eq!(breakpoints::set(write(0x11, 2)), Err(SetError::Shape));
    assert_eq!(breakpoints::set(code(1 << 47)), Err(SetError::Address));
    assert_eq!(list(), "no breakpoints\n");
    for number in 0..4 {
        assert_eq!(breakpoints::set(write(0x10, 1 << number)), Ok(number));
    }
    assert_eq!(breakpoints::set(code(0x10)), Err(SetError::Full));
    assert!(breakpoints::clear(2));
    assert!(!breakpoints::clear(2) && !breakpoints::clear(4));
    assert_eq!(breakpoints::set(code(0x10)), Ok(2));
    assert!(list().contains("2: execution at 0x0000000000000010\n"));
    assert!((0..4).all(breakpoints::clear));
}
