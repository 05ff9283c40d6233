//! Parses the output of `strace -f -X raw -v`.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// An argument or result as strace shows it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Number(u64),
    /// A string, and whether strace has cut it.
    Text(Vec<u8>, bool),
    /// The fields of a structure, with their names where strace shows them.
    Structure(Vec<(String, Value)>),
    List(Vec<Value>),
    /// A set, given by the elements that are not in it.
    Not(Vec<Value>),
    Other(String),
}

/// How a call of the trace ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Ended {
    With(i64),
    /// The call failed with the error of this name.
    Failed(String),
    /// The call did not return, or was interrupted to be restarted.
    Not,
}

#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) line: usize,
    pub(crate) name: String,
    pub(crate) arguments: Vec<(String, Value)>,
    pub(crate) ended: Ended,
}

/// The next event of a process.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Call(Record),
    /// The handler of a signal was called.
    Handled(u32),
}

/// What one process did in the trace.
#[derive(Debug, Default)]
pub(crate) struct Process {
    pub(crate) steps: VecDeque<Step>,
    /// The calls of each run of a handler, by signal.
    pub(crate) handlers: BTreeMap<u32, VecDeque<Vec<Record>>>,
}

/// The processes of a trace by id, with the first one's id.
pub(crate) struct Trace {
    pub(crate) first: u64,
    pub(crate) processes: BTreeMap<u64, Process>,
}

struct Cursor<'a> {
    text: &'a [u8],
    at: usize,
}

impl Cursor<'_> {
    fn peek(&self) -> u8 {
        self.text.get(self.at).copied().unwrap_or(0)
    }

    fn skip_space(&mut self) {
        loop {
            while self.peek() == b' ' {
                self.at += 1;
            }
            if !self.text[self.at.min(self.text.len())..].starts_with(b"/*") {
                return;
            }
            let rest = &self.text[self.at..];
            self.at += rest.windows(2).position(|two| two == b"*/").map_or(rest.len(), |end| end + 2);
        }
    }

    fn take(&mut self, byte: u8) -> bool {
        self.skip_space();
        let found = self.peek() == byte;
        self.at += usize::from(found);
        found
    }

    fn number(&mut self) -> Option<u64> {
        let rest = &self.text[self.at..];
        let end = rest.iter().position(|byte| !(byte.is_ascii_alphanumeric() || *byte == b'-'));
        let word = std::str::from_utf8(&rest[..end.unwrap_or(rest.len())]).ok()?;
        let value = match word {
            "NULL" => Some(0),
            _ if word.starts_with("0x") => u64::from_str_radix(&word[2..], 16).ok(),
            _ if word.starts_with('-') => word.parse::<i64>().ok().map(|value| value as u64),
            _ if word.len() > 1 && word.starts_with('0') => u64::from_str_radix(&word[1..], 8).ok(),
            _ => word.parse().ok(),
        };
        if value.is_some() {
            self.at += word.len();
        }
        value
    }

    fn text(&mut self) -> Value {
        let mut bytes = Vec::new();
        self.at += 1;
        while self.at < self.text.len() && self.peek() != b'"' {
            let byte = self.peek();
            self.at += 1;
            if byte != b'\\' {
                bytes.push(byte);
                continue;
            }
            let escaped = self.peek();
            self.at += 1;
            bytes.push(match escaped {
                b'n' => b'\n',
                b't' => b'\t',
                b'r' => b'\r',
                b'v' => 11,
                b'f' => 12,
                b'0'..=b'7' => {
                    let mut value = u32::from(escaped - b'0');
                    for _ in 0..2 {
                        if (b'0'..=b'7').contains(&self.peek()) {
                            value = 8 * value + u32::from(self.peek() - b'0');
                            self.at += 1;
                        }
                    }
                    value as u8
                }
                other => other,
            });
        }
        self.at += 1;
        let cut = self.text[self.at.min(self.text.len())..].starts_with(b"...");
        self.at += if cut { 3 } else { 0 };
        Value::Text(bytes, cut)
    }

    fn list(&mut self, end: u8) -> Vec<Value> {
        let mut values = Vec::new();
        while !self.take(end) && self.at < self.text.len() {
            values.push(self.value());
            self.take(b',');
        }
        values
    }

    /// Parses a value of another form: everything up to the delimiter that ends it.
    fn other(&mut self) -> Value {
        let start = self.at;
        let mut depth = 0;
        while self.at < self.text.len() {
            match self.peek() {
                b'(' | b'[' | b'{' => depth += 1,
                b')' | b']' | b'}' | b',' if depth == 0 => break,
                b')' | b']' | b'}' => depth -= 1,
                _ => {}
            }
            self.at += 1;
        }
        Value::Other(String::from_utf8_lossy(&self.text[start..self.at]).into_owned())
    }

    fn value(&mut self) -> Value {
        self.skip_space();
        match self.peek() {
            b'"' => self.text(),
            b'[' => {
                self.at += 1;
                Value::List(self.list(b']'))
            }
            b'~' => {
                self.at += 2;
                Value::Not(self.list(b']'))
            }
            b'{' => {
                self.at += 1;
                let mut fields = Vec::new();
                while !self.take(b'}') && self.at < self.text.len() {
                    fields.push(self.named());
                    self.take(b',');
                }
                Value::Structure(fields)
            }
            // A name without a value is followed by numbers.
            _ => match if self.peek() == b'|' { Some(0) } else { self.number() } {
                Some(mut value) => {
                    while self.peek() == b'|' {
                        self.at += 1;
                        value |= self.number().unwrap_or(0);
                    }
                    Value::Number(value)
                }
                None => self.other(),
            },
        }
    }

    /// Parses a value, which may have a name before it.
    fn named(&mut self) -> (String, Value) {
        self.skip_space();
        let rest = &self.text[self.at..];
        let end = rest.iter().position(|byte| !(byte.is_ascii_alphanumeric() || *byte == b'_')).unwrap_or(0);
        if end > 0 && rest.get(end) == Some(&b'=') {
            let name = String::from_utf8_lossy(&rest[..end]).into_owned();
            self.at += end + 1;
            return (name, self.value());
        }
        (String::new(), self.value())
    }
}

fn record(line: usize, text: &str) -> Option<Record> {
    let open = text.find('(')?;
    let mut cursor = Cursor { text: text.as_bytes(), at: open + 1 };
    let mut arguments = Vec::new();
    while !cursor.take(b')') {
        if cursor.at >= text.len() {
            return None;
        }
        arguments.push(cursor.named());
        cursor.take(b',');
    }
    let result = text[cursor.at..].trim_start().strip_prefix('=')?.trim_start();
    let mut words = result.split(' ');
    let ended = match (words.next()?, words.next()) {
        ("?", _) => Ended::Not,
        ("-1", Some(name)) => Ended::Failed(name.into()),
        (number, _) => {
            let value = Cursor { text: number.as_bytes(), at: 0 }.number()?;
            Ended::With(value as i64)
        }
    };
    Some(Record { line, name: text[..open].into(), arguments, ended })
}

/// The number of a signal that strace shows by name.
fn signal(name: &str) -> u32 {
    const NAMES: [(&str, u32); 9] = [
        ("SIGHUP", 1),
        ("SIGINT", 2),
        ("SIGUSR1", 10),
        ("SIGSEGV", 11),
        ("SIGUSR2", 12),
        ("SIGPIPE", 13),
        ("SIGALRM", 14),
        ("SIGTERM", 15),
        ("SIGCHLD", 17),
    ];
    NAMES.iter().find(|(known, _)| *known == name).map_or(0, |(_, number)| *number)
}

fn number_of(value: &Value) -> u64 {
    if let Value::Number(number) = value { *number } else { 0 }
}

/// The signals for which a process has handlers.
type Handlers = BTreeSet<u32>;

impl Trace {
    pub(crate) fn parse(text: &str) -> Trace {
        let mut processes: BTreeMap<u64, Process> = BTreeMap::new();
        let mut unfinished: BTreeMap<u64, String> = BTreeMap::new();
        let mut handlers: BTreeMap<u64, Handlers> = BTreeMap::new();
        let mut inherited: BTreeMap<u64, Handlers> = BTreeMap::new();
        // The handlers that are running, the innermost last.
        let mut running: BTreeMap<u64, Vec<(u32, Vec<Record>)>> = BTreeMap::new();
        let mut first = 0;
        for (index, line) in text.lines().enumerate() {
            let Some((pid, rest)) = line.split_once(' ') else { continue };
            let Ok(pid) = pid.parse::<u64>() else { continue };
            let rest = rest.trim_start();
            first = if first == 0 { pid } else { first };
            // A new process has the handlers of the process that was in fork or clone when it
            // appeared.
            if !handlers.contains_key(&pid) {
                let maker = unfinished.iter().find(|(_, text)| makes_process(text)).map(|(pid, _)| *pid);
                let from = maker.and_then(|maker| handlers.get(&maker).cloned());
                handlers.insert(pid, from.or(inherited.remove(&pid)).unwrap_or_default());
            }
            if let Some(kind) = rest.strip_prefix("--- ") {
                let number = signal(kind.split(' ').next().unwrap_or(""));
                if handlers[&pid].contains(&number) {
                    running.entry(pid).or_default().push((number, Vec::new()));
                }
                continue;
            }
            let text = if let Some(begun) = rest.strip_suffix("<unfinished ...>") {
                unfinished.insert(pid, begun.trim_end().into());
                continue;
            } else if rest.starts_with("<... ") {
                let Some((_, end)) = rest.split_once("resumed>") else { continue };
                unfinished.remove(&pid).unwrap_or_default() + end
            } else {
                rest.to_string()
            };
            let Some(record) = record(index + 1, &text) else { continue };
            if record.name == "rt_sigaction"
                && let Some((_, Value::Structure(action))) = record.arguments.get(1)
            {
                let own = handlers.entry(pid).or_default();
                let number = number_of(&record.arguments[0].1) as u32;
                match action.first().map(|(_, handler)| number_of(handler)) {
                    Some(0 | 1) | None => drop(own.remove(&number)),
                    Some(_) => drop(own.insert(number)),
                }
            }
            if record.name == "execve" && record.ended == Ended::With(0) {
                handlers.insert(pid, Handlers::new());
            }
            if let (true, Ended::With(child)) = (makes_process(&record.name), &record.ended) {
                inherited.insert(*child as u64, handlers[&pid].clone());
            }
            if record.name == "rt_sigreturn" {
                let Some((number, records)) = running.entry(pid).or_default().pop() else { continue };
                let process = processes.entry(pid).or_default();
                process.handlers.entry(number).or_default().push_back(records);
                // The interrupted call was to be restarted; whether it was is known only now.
                if let Some(Step::Call(call)) = process.steps.back_mut()
                    && call.ended == Ended::Not
                {
                    match record.ended {
                        Ended::Failed(error) => call.ended = Ended::Failed(error),
                        _ => drop(process.steps.pop_back()),
                    }
                }
                process.steps.push_back(Step::Handled(number));
                continue;
            }
            match running.get_mut(&pid).and_then(|running| running.last_mut()) {
                Some((_, records)) => records.push(record),
                None => processes.entry(pid).or_default().steps.push_back(Step::Call(record)),
            }
        }
        Trace { first, processes }
    }
}

fn makes_process(text: &str) -> bool {
    text.starts_with("clone") || text.starts_with("vfork") || text.starts_with("fork")
}

#[test]
fn lines_of_strace_are_parsed() {
    let text = "7 openat(-100, \"/a\\n\\1\"..., 0x80000|02) = -1 ENOENT (No such file or directory)\n\
        7 rt_sigaction(10, {sa_handler=0x55, sa_mask=~[32 33], sa_flags=0}, NULL, 8) = 0\n\
        7 rt_sigsuspend([], 8 <unfinished ...>\n\
        8 getpid() = 8\n\
        7 <... rt_sigsuspend resumed>) = ? ERESTARTNOHAND (To be restarted if no handler)\n\
        7 --- SIGUSR1 {si_signo=10} ---\n\
        7 getuid() = 0\n\
        7 rt_sigreturn({mask=[]}) = -1 EINTR (Interrupted system call)\n\
        7 exit_group(0) = ?\n";
    let trace = Trace::parse(text);
    assert_eq!((trace.first, trace.processes.len()), (7, 2));
    let process = &trace.processes[&7];
    let names = process.steps.iter().map(|step| match step {
        Step::Call(record) => (record.name.clone(), record.ended.clone()),
        Step::Handled(number) => (number.to_string(), Ended::Not),
    });
    let failed = |name: &str| Ended::Failed(name.into());
    let expected = [
        ("openat", failed("ENOENT")),
        ("rt_sigaction", Ended::With(0)),
        ("rt_sigsuspend", failed("EINTR")),
        ("10", Ended::Not),
        ("exit_group", Ended::Not),
    ];
    let names: Vec<_> = names.collect();
    assert_eq!(names, expected.map(|(name, ended)| (name.to_string(), ended)));
    let Step::Call(open) = &process.steps[0] else { panic!("no call") };
    assert_eq!(open.arguments[0].1, Value::Number(-100i64 as u64));
    assert_eq!(open.arguments[1].1, Value::Text(b"/a\n\x01".to_vec(), true));
    assert_eq!(open.arguments[2].1, Value::Number(0x80002));
    assert_eq!(process.handlers[&10][0][0].name, "getuid");
}
