//! The phases of a call to another processor and of its answer, each direction by itself, to a
//! processor that polls and to one that sleeps: a suite boots the program that makes them and dumps
//! the kernel's trace; `docs/results` keeps what is read out of that, and a picture of the book is
//! made of it.

use crate::bench::chart::{BACKGROUND, escape};
use ::trace::{Event, Record};
use anyhow::{Context, Result, bail};
use mac_build::{build, tree};
use mac_machine::boots;
use mac_machine::suites::{self, Overrides};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write as _;
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

/// A part of a message's way.
#[derive(Debug, Deserialize, Serialize, PartialEq)]
struct Phase {
    name: String,
    /// On which processor.
    processor: u16,
    /// How many instructions both processors executed in it.
    ticks: u64,
}

/// What the program prints of a call: when it was made, had arrived, was answered and was back.
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

fn picture() -> PathBuf {
    tree::root().join("docs/src/pictures/crossing-phases.svg")
}

/// Boots the suite and writes results and picture.
pub(super) fn publish() -> Result<()> {
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
    let messages = read(&String::from_utf8_lossy(&fs::read(&verdict.log)?))?;
    let mut text = serde_json::to_string_pretty(&messages)?;
    text.push('\n');
    build::write_if_changed(&results(), text.as_bytes())?;
    build::write_if_changed(&picture(), svg(&messages).as_bytes())?;
    println!("{}\n{}", results().display(), picture().display());
    Ok(())
}

/// An error if the picture is not that of the results.
pub fn check() -> Result<()> {
    let text = fs::read_to_string(results()).context("reading docs/results/crossing-phases.json")?;
    let messages: Vec<Message> = serde_json::from_str(&text)?;
    if fs::read_to_string(picture()).ok().as_deref() != Some(&svg(&messages)) {
        bail!("{} is not that of docs/results: ./mac trace --phases", picture().display());
    }
    Ok(())
}

/// The messages of which the console's output tells.
fn read(text: &str) -> Result<Vec<Message>> {
    let mut records: Vec<Record> = text.lines().filter_map(Record::parse_line).collect();
    records.sort_by_key(|record| record.time);
    let mut messages = Vec::new();
    for call in text.lines().filter_map(|line| serde_json::from_str::<Call>(line.trim()).ok()) {
        let [called, arrived, answered, back] = call.times;
        let state = if call.targets == "sleep" { "sleeps" } else { "polls" };
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

const RETURN: &str = "who runs is chosen, and returns to its program";

/// What ends with an event on the way of a message.
fn name(event: Event) -> Option<&'static str> {
    Some(match event {
        Event::IpcCall => "entry",
        Event::IpcTransfer | Event::IpcReturn => "the message is moved",
        Event::Post => "the client is posted",
        Event::IpiReceive => "the interrupt arrives, the processor wakes",
        Event::Serve => "the client is found in the mailbox",
        Event::Switch => "the client's state is loaded",
        _ => return None,
    })
}

const WIDTH: f64 = 960.0;
const LEFT: f64 = 210.0;
const RIGHT: f64 = 60.0;
const ROW: f64 = 46.0;
const BAR: f64 = 16.0;
const COLOURS: [&str; 7] = ["#6f9fd0", "#b5432a", "#e0a96d", "#8d6bb1", "#3b7d3b", "#b79ad0", "#9a9a9a"];

/// A row for each message on one scale, with a bar for each of the two processors.
fn svg(messages: &[Message]) -> String {
    let total = |message: &Message| message.phases.iter().map(|phase| phase.ticks).sum::<u64>();
    let longest = messages.iter().map(total).max().unwrap_or(1).max(1) as f64;
    let mut names: Vec<&str> = Vec::new();
    for phase in messages.iter().flat_map(|message| &message.phases) {
        if !names.contains(&phase.name.as_str()) {
            names.push(&phase.name);
        }
    }
    let colours: BTreeMap<&str, &str> = names.iter().copied().zip(COLOURS.iter().copied().cycle()).collect();
    let below = messages.len() as f64 * ROW + 24.0;
    let height = below + 16.0 * names.len().div_ceil(2) as f64;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
         font-family=\"sans-serif\" font-size=\"11\">\n{BACKGROUND}"
    );
    for (index, message) in messages.iter().enumerate() {
        let top = index as f64 * ROW + 8.0;
        // Writing to a string cannot fail.
        let _ = writeln!(svg, "<text x=\"4\" y=\"{:.1}\">{}</text>", top + 20.0, escape(&message.name));
        let mut x = LEFT;
        for phase in &message.phases {
            let width = phase.ticks as f64 / longest * (WIDTH - LEFT - RIGHT);
            let lane = if phase.processor == message.from { 0.0 } else { BAR + 2.0 };
            let _ = writeln!(
                svg,
                "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{BAR}\" fill=\"{}\" stroke=\"#fff\" \
                 stroke-width=\"0.5\"><title>{}, on processor {}: {}</title></rect>",
                top + lane,
                colours.get(phase.name.as_str()).copied().unwrap_or_default(),
                escape(&phase.name),
                phase.processor,
                phase.ticks
            );
            if width > 26.0 {
                let _ = writeln!(
                    svg,
                    "<text x=\"{:.1}\" y=\"{:.1}\" font-size=\"9\" fill=\"#fff\">{}</text>",
                    x + 3.0,
                    top + lane + 12.0,
                    phase.ticks
                );
            }
            x += width;
        }
        for (processor, lane) in [(message.from, 0.0), (message.to, BAR + 2.0)] {
            let _ = writeln!(
                svg,
                "<text x=\"{:.1}\" y=\"{:.1}\" font-size=\"9\" text-anchor=\"end\">{processor}</text>",
                LEFT - 6.0,
                top + lane + 12.0
            );
        }
        let _ = writeln!(svg, "<text x=\"{:.1}\" y=\"{:.1}\">{}</text>", x + 5.0, top + 20.0, total(message));
    }
    for (index, name) in names.iter().enumerate() {
        let (x, y) = (8.0 + (index % 2) as f64 * WIDTH / 2.0, below + 16.0 * (index / 2) as f64);
        let _ = writeln!(
            svg,
            "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"9\" height=\"9\" fill=\"{}\"/>\n<text x=\"{:.1}\" y=\"{y:.1}\">{}</text>",
            y - 9.0,
            colours.get(name).copied().unwrap_or_default(),
            x + 14.0,
            escape(name)
        );
    }
    svg.push_str("</svg>\n");
    svg
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(time: u64, processor: u16, event: Event) -> Record {
        Record { time, processor, event: event as u8, ..Record::EMPTY }
    }

    /// What the sender's processor does after it has sent the message is not on the way, nor what
    /// the other's did before.
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
        assert_eq!(svg(&messages).matches("<title>").count(), 6);
    }

    #[test]
    fn the_books_picture_is_that_of_the_results() {
        check().unwrap();
    }
}
