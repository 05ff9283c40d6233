//! `./mac trace`: shows the kernel's trace buffer, as the debugger has dumped it on the console, as
//! a table or a picture.

mod lanes;
mod phases;

use ::trace::{Event, EventSet, Record, Words};
use anyhow::{Context, Result, bail};
use clap::Args;
use std::collections::HashMap;
use std::fmt::Write;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Options of `./mac trace`.
#[derive(Args)]
pub struct Options {
    /// Console output with a dump in it; standard input without one
    log: Option<PathBuf>,
    /// Only these events: names separated by commas; `ipc-*` stands for all that begin so
    #[arg(long)]
    events: Option<String>,
    /// Only events from this time on, as the table of all shows it
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Only events up to this time
    #[arg(long, default_value_t = u64::MAX)]
    to: u64,
    /// Write a picture (SVG) instead: a lane for each processor, on one time line
    #[arg(long)]
    chart: Option<PathBuf>,
    /// Record calls between processors again, and put their phases into docs/results and the book,
    /// as pictures
    #[arg(long, conflicts_with_all = ["log", "events", "chart"])]
    phases: bool,
}

pub(crate) use self::phases::picture as picture_of_phases;
pub use self::phases::publish as publish_phases;

/// The largest number of events in a picture: more of them could not be distinguished.
const MOST_SHOWN: usize = 200;

/// Prints the table, or writes the picture.
pub fn run(options: &Options) -> Result<()> {
    if options.phases {
        return phases::publish();
    }
    let mut text = Vec::new();
    match &options.log {
        Some(path) => File::open(path).and_then(|mut file| file.read_to_end(&mut text)),
        None => std::io::stdin().read_to_end(&mut text),
    }
    .with_context(|| format!("cannot read {}", options.log.as_deref().unwrap_or(Path::new("-")).display()))?;
    let wanted = match EventSet::parse(options.events.as_deref().unwrap_or("all")) {
        Ok(set) => set,
        Err(name) => {
            let names: Vec<_> = Event::ALL.iter().map(|event| event.name()).collect();
            bail!("there is no event `{name}`; there are {}", names.join(", "))
        }
    };
    let mut records: Vec<Record> =
        String::from_utf8_lossy(&text).lines().filter_map(Record::parse_line).collect();
    if records.is_empty() {
        bail!("no trace in the input: dump it with the kernel debugger's `trace` command");
    }
    let start = records.iter().map(|record| record.time).min().unwrap_or(0);
    let span = options.from..=options.to;
    records.retain(|record| {
        span.contains(&(record.time - start))
            && Event::from_number(record.event).is_some_and(|event| wanted.contains(event))
    });
    let Some(picture) = &options.chart else {
        print!("{}", table(records, start));
        return Ok(());
    };
    records.sort_by_key(|record| (record.time, record.processor));
    if records.len() > MOST_SHOWN {
        bail!("{} events are too many for a picture: choose some (--from, --to, --events)", records.len());
    }
    std::fs::write(picture, lanes::svg(&records)?).with_context(|| format!("writing {}", picture.display()))
}

/// A table of the records of all processors on one time line, from `start` on; `since` is the time
/// since the previous event of the same processor.
fn table(mut records: Vec<Record>, start: u64) -> String {
    records.sort_by_key(|record| (record.time, record.processor));
    let mut table = String::from("      time    since  cpu  thread  event           words\n");
    let mut last: HashMap<u16, u64> = HashMap::new();
    for record in &records {
        let Some(event) = Event::from_number(record.event) else { continue };
        let since = record.time - last.insert(record.processor, record.time).unwrap_or(record.time);
        let _ = writeln!(
            table,
            "{:>10} {since:>8} {:>4} {:>7x}  {:<15} {}",
            record.time - start,
            record.processor,
            record.thread,
            event.name(),
            Words(record)
        );
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(time: u64, processor: u16, event: Event) -> Record {
        Record { time, processor, thread: 0x3a, event: event as u8, a: 0x10, b: 0x20, ..Record::EMPTY }
    }

    #[test]
    fn records_of_all_processors_stand_on_one_time_line() {
        let records = vec![
            record(1300, 0, Event::Switch),
            record(1000, 0, Event::IpcCall),
            record(1100, 1, Event::IpiReceive),
        ];
        let table = table(records, 1000);
        let lines: Vec<_> = table.lines().collect();
        assert_eq!(lines[1], "         0        0    0      3a  ipc-call        to 0x10, from 0x20");
        assert_eq!(lines[2], "       100        0    1      3a  ipi-receive     ");
        assert_eq!(lines[3], "       300      300    0      3a  switch          to 0x10, space 0x20");
    }
}
