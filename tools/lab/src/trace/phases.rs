//! Records the phases of a call to another processor and of its answer: in each direction, to a
//! processor that polls and to one that sleeps. A suite boots the program that makes the calls and
//! dumps the kernel's trace. The phases are kept in `docs/results`, and drawn in a picture of the
//! book. Another picture shows the trace of one of the calls.

use super::lanes;
use crate::chart::{self, Row};
use ::trace::{Event, Record};
use anyhow::{Context, Result, bail};
use mac_build::{build, tree};
use mac_machine::boots;
use mac_machine::suites::{self, Overrides};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::PathBuf;

const SUITE: &str = "kernel/phases";

/// A message from processor to processor, from the sender's system call to the receiver's return
/// from its own.
#[derive(Debug, Deserialize, Serialize, PartialEq)]
struct Message {
    name: String,
    from: u16,
    to: u16,
    phases: Vec<Phase>,
}

/// A part of a message's way from sender to receiver.
#[derive(Debug, Deserialize, Serialize, PartialEq)]
struct Phase {
    name: String,
    /// The processor on which it is executed.
    processor: u16,
    /// How many instructions both processors executed during it.
    ticks: u64,
}

/// The line that the program prints for a call: when it was made, had arrived, was answered and was
/// back.
#[derive(Deserialize)]
struct Call {
    client: u16,
    server: u16,
    targets: String,
    times: [u64; 4],
}

fn results() -> PathBuf {
    tree::root().join("docs/results/crossing-phases.json")
}

/// The book's picture of one call, to a processor that polls.
fn picture_of_a_call() -> PathBuf {
    tree::root().join("docs/src/pictures/call-to-another-processor.svg")
}

/// Boots the suite and writes results and pictures.
pub fn publish() -> Result<()> {
    build::only_release()?;
    let suites = suites::read(suites::TESTS)?;
    let suite = suites.iter().find(|suite| suite.name == SUITE).context("there is no such suite any more")?;
    build::kernel_and_programs(&suite.programs().collect::<Vec<_>>())?;
    let runs = suite.runs(&Overrides::default()).ok().context("it runs under TCG")?;
    let run = runs.first().context("it runs on a machine")?;
    let verdict = boots::run(run)?;
    mac_machine::boots::show(run, &verdict);
    if verdict.failed() > 0 {
        bail!("nothing is published");
    }
    let (records, calls) = parse(&String::from_utf8_lossy(&fs::read(&verdict.log)?));
    let messages = messages(&records, &calls)?;
    let call = lanes::svg(&one_call(&records, &calls)?)?;
    build::write_if_changed(&picture_of_a_call(), call.as_bytes())?;
    println!("{}", picture_of_a_call().display());
    let text = serde_json::to_string_pretty(&messages)? + "\n";
    build::write_if_changed(&results(), text.as_bytes())?;
    println!("{}", results().display());
    crate::bench::update_tables()
}

/// The picture of the phases.
pub(crate) fn picture() -> Result<String> {
    svg(&serde_json::from_str::<Vec<Message>>(&tree::read(&results())?)?)
}

/// Parses the console's output: the events, the earliest first, and the calls.
fn parse(text: &str) -> (Vec<Record>, Vec<Call>) {
    let mut records: Vec<Record> = text.lines().filter_map(Record::parse_line).collect();
    records.sort_by_key(|record| (record.time, record.processor));
    (records, text.lines().filter_map(|line| serde_json::from_str(line.trim()).ok()).collect())
}

/// The events of one call from processor 1 to processor 0, which polls, and of its answer.
fn one_call(records: &[Record], calls: &[Call]) -> Result<Vec<Record>> {
    let shown = calls.iter().find(|call| (call.client, call.server, call.polls()) == (1, 0, true));
    let [called, _, _, back] = shown.context("there is no call from processor 1 to 0, which polls")?.times;
    let within = |record: &&Record| (called..=back).contains(&record.time) && record.processor < 2;
    Ok(records.iter().filter(within).copied().collect())
}

impl Call {
    fn polls(&self) -> bool {
        self.targets != "sleep"
    }
}

/// The messages that the calls consist of.
fn messages(records: &[Record], calls: &[Call]) -> Result<Vec<Message>> {
    let mut messages = Vec::new();
    for call in calls {
        let [called, arrived, answered, back] = call.times;
        let state = if call.polls() { "polls" } else { "sleeps" };
        for (what, from, to, span) in [
            ("call", call.client, call.server, called..arrived),
            ("answer", call.server, call.client, answered..back),
        ] {
            let on_way = records.iter().filter(|record| span.contains(&record.time)).copied();
            messages.push(Message {
                name: format!("{what}, {from} to {to}, which {state}"),
                from,
                to,
                phases: phases(from, to, span.start, span.end, &on_way.collect::<Vec<_>>()),
            });
        }
    }
    if messages.len() != 8 || messages.iter().any(|message| message.phases.len() < 4) {
        bail!("the trace does not have all of the eight messages");
    }
    Ok(messages)
}

/// The phases between `start` and `end`: until it is posted a message is on processor `from`, then
/// on `to`. A phase is named after the event that ends it.
fn phases(from: u16, to: u16, start: u64, end: u64, records: &[Record]) -> Vec<Phase> {
    let mut phases: Vec<Phase> = Vec::new();
    let (mut here, mut last) = (from, start);
    let mut add = |name: &str, processor: u16, ticks: u64| match phases.last_mut() {
        Some(phase) if phase.name == name && phase.processor == processor => phase.ticks += ticks,
        _ => phases.push(Phase { name: name.into(), processor, ticks }),
    };
    for record in records.iter().filter(|record| record.processor == from || record.processor == to) {
        let Some(event) = Event::from_number(record.event) else { continue };
        let Some(name) = name(event) else { continue };
        if record.processor != here {
            continue;
        }
        add(name, here, record.time - last);
        last = record.time;
        if event == Event::Post {
            here = to;
        }
    }
    add(RETURN, here, end - last);
    phases
}

const RETURN: &str = "the next thread is chosen, and returns to its program";

/// The name of the phase that ends with an event.
fn name(event: Event) -> Option<&'static str> {
    Some(match event {
        Event::IpcCall => "entry",
        Event::IpcTransfer | Event::IpcReturn => "the message is transferred",
        Event::Post => "the client is handed over",
        Event::IpiReceive => "the interrupt arrives, the processor wakes",
        Event::Serve => "the client is found in the request queue",
        Event::Switch => "the client's state is loaded",
        _ => return None,
    })
}

/// Draws a row for each message on one scale, with a lane for each of the two processors.
fn svg(messages: &[Message]) -> Result<String> {
    let total = |message: &Message| message.phases.iter().map(|phase| phase.ticks).sum::<u64>();
    let longest = messages.iter().map(total).max().unwrap_or(1).max(1) as f64;
    let mut names: Vec<&str> = Vec::new();
    for phase in messages.iter().flat_map(|message| &message.phases) {
        if !names.contains(&phase.name.as_str()) {
            names.push(&phase.name);
        }
    }
    let row = |message: &Message| {
        let piece = |phase: &Phase| {
            let part = names.iter().position(|name| *name == phase.name).unwrap_or_default();
            (usize::from(phase.processor != message.from), part, phase.ticks as f64)
        };
        Row {
            name: message.name.clone(),
            lanes: [message.from, message.to].map(|processor| processor.to_string()).to_vec(),
            pieces: message.phases.iter().map(piece).collect(),
            sum: total(message).to_string(),
        }
    };
    chart::rows(&messages.iter().map(row).collect::<Vec<_>>(), &names, longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(time: u64, processor: u16, event: Event) -> Record {
        Record { time, processor, event: event as u8, ..Record::EMPTY }
    }

    /// Phases leave out what the sender's processor does after it has sent the message, and what
    /// the other did before it arrived.
    #[test]
    fn a_message_changes_its_processor_when_it_is_posted() {
        let records = [
            record(103, 1, Event::Idle),
            record(110, 0, Event::IpcCall),
            record(130, 0, Event::Post),
            record(135, 0, Event::Idle),
            record(140, 1, Event::IpiReceive),
            record(150, 1, Event::Serve),
            record(170, 1, Event::IpcTransfer),
            record(175, 1, Event::IpcReturn),
        ];
        let phases = phases(0, 1, 100, 200, &records);
        let told: Vec<_> = phases.iter().map(|phase| (phase.processor, phase.ticks)).collect();
        assert_eq!(told, [(0, 10), (0, 20), (1, 10), (1, 10), (1, 25), (1, 25)]);
        assert_eq!(phases.iter().map(|phase| phase.ticks).sum::<u64>(), 100);
        let messages = [Message { name: "call".into(), from: 0, to: 1, phases }];
        // The rectangles are the background, the six phases, and their names below.
        assert_eq!(svg(&messages).unwrap().matches("<rect").count(), 1 + 6 + 6);
    }

    #[test]
    fn the_picture_of_a_call_has_the_events_of_its_two_processors() {
        let call = |client, targets: &str, times| Call {
            client,
            server: 1 - client,
            targets: targets.into(),
            times,
        };
        let calls = [
            call(0, "poll", [0, 10, 20, 30]),
            call(1, "sleep", [40, 50, 60, 70]),
            call(1, "poll", [80, 90, 95, 100]),
        ];
        let records = [(79, 0), (81, 1), (85, 0), (86, 2), (99, 1), (101, 0)];
        let records = records.map(|(time, processor)| record(time, processor, Event::Switch));
        let shown: Vec<u64> = one_call(&records, &calls).unwrap().iter().map(|record| record.time).collect();
        assert_eq!(shown, [81, 85, 99]);
        assert!(one_call(&records, &calls[..2]).is_err());
    }
}
