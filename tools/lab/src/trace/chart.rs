//! A trace as a picture: a lane for each processor, all on one time line; what one processor sends
//! another as a line between them. Events have numbers, which a list below explains.

use crate::bench::chart::{BACKGROUND, escape};
use ::trace::{Event, Record, Words};
use std::collections::BTreeMap;
use std::fmt::Write;

const WIDTH: f64 = 960.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 16.0;
const LANE: f64 = 72.0;
/// Of a lane: rows of numbers above the bar, and the bar.
const ROWS: usize = 3;
const ROW: f64 = 12.0;
const BAR: f64 = 18.0;
const LINE: f64 = 16.0;
const COLUMNS: usize = 2;

/// What the time after an event is spent on, as far as the event says.
fn colour(event: Event) -> &'static str {
    match event {
        Event::Idle => "#ececec",
        Event::Wake | Event::IpiReceive | Event::Interrupt | Event::Timer => "#e0a96d",
        Event::Post | Event::IpiSend | Event::Serve | Event::Migrate | Event::ShootDown => "#b5432a",
        Event::IpcCall | Event::IpcWaitSend | Event::IpcTransfer | Event::IpcWaitReceive => "#6f9fd0",
        Event::IpcReturn | Event::IpcError | Event::Switch => "#3b7d3b",
        _ => "#b79ad0",
    }
}

/// Events of one picture, the earliest first.
struct Lanes<'a> {
    records: &'a [Record],
    start: u64,
    length: u64,
    /// The place of each processor.
    places: BTreeMap<u16, usize>,
}

impl Lanes<'_> {
    fn x(&self, time: u64) -> f64 {
        LEFT + (time - self.start) as f64 / self.length as f64 * (WIDTH - LEFT - RIGHT)
    }

    /// Top of a processor's bar.
    fn y(&self, processor: u16) -> f64 {
        self.places.get(&processor).map_or(0.0, |place| *place as f64 * LANE) + ROWS as f64 * ROW + 10.0
    }

    /// The next event of `processor` after `index` that is how something arrives.
    fn arrival(&self, index: usize, processor: u16) -> Option<&Record> {
        self.records[index + 1..].iter().find(|later| {
            let event = Event::from_number(later.event);
            later.processor == processor
                && matches!(event, Some(Event::Wake | Event::IpiReceive | Event::Serve | Event::Switch))
        })
    }
}

/// The picture of `records`, which are sorted by time.
pub(super) fn svg(records: &[Record]) -> String {
    let start = records.first().map_or(0, |record| record.time);
    let end = records.last().map_or(0, |record| record.time);
    let mut places: BTreeMap<u16, usize> = records.iter().map(|record| (record.processor, 0)).collect();
    places.values_mut().enumerate().for_each(|(index, place)| *place = index);
    // What follows the last event is shown, too.
    let length = (end - start).max(20) * 21 / 20;
    let lanes = Lanes { records, start, length, places };
    let below = lanes.places.len() as f64 * LANE + 28.0;
    let height = below + LINE * (records.len().div_ceil(COLUMNS) as f64 + 1.0);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
         font-family=\"sans-serif\" font-size=\"11\">\n{BACKGROUND}"
    );
    for processor in lanes.places.keys() {
        bars(&mut svg, &lanes, *processor);
    }
    for (index, record) in records.iter().enumerate() {
        let sends = matches!(Event::from_number(record.event), Some(Event::Post | Event::IpiSend));
        let to = u16::try_from(record.a).ok().filter(|to| sends && lanes.places.contains_key(to));
        if let Some(arrival) = to.and_then(|to| lanes.arrival(index, to)) {
            let down = lanes.y(arrival.processor) > lanes.y(record.processor);
            let edge = |processor, lower| lanes.y(processor) + if lower { BAR } else { 0.0 };
            // Writing to a string cannot fail.
            let _ = writeln!(
                svg,
                "<path d=\"M{:.1} {:.1}L{:.1} {:.1}\" stroke=\"#b5432a\" stroke-dasharray=\"4 2\"/>",
                lanes.x(record.time),
                edge(record.processor, down),
                lanes.x(arrival.time),
                edge(arrival.processor, !down)
            );
        }
    }
    let _ = writeln!(
        svg,
        "<text x=\"{LEFT}\" y=\"{:.1}\">0</text>\n<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{} ticks</text>",
        below - 12.0,
        WIDTH - RIGHT,
        below - 12.0,
        length
    );
    list(&mut svg, records, start, below + LINE);
    svg.push_str("</svg>\n");
    svg
}

/// One processor's lane.
fn bars(svg: &mut String, lanes: &Lanes<'_>, processor: u16) {
    let top = lanes.y(processor);
    let _ = writeln!(svg, "<text x=\"4\" y=\"{:.1}\">processor {processor}</text>", top + 13.0);
    let own: Vec<(usize, &Record)> =
        lanes.records.iter().enumerate().filter(|(_, record)| record.processor == processor).collect();
    // Where the last number of each row ends.
    let mut ends = [f64::MIN; ROWS];
    for (place, (index, record)) in own.iter().enumerate() {
        let Some(event) = Event::from_number(record.event) else { continue };
        let left = lanes.x(record.time);
        let end = own.get(place + 1).map_or(lanes.start + lanes.length, |(_, next)| next.time);
        let width = (lanes.x(end) - left).max(0.5);
        let _ = writeln!(
            svg,
            "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{BAR}\" fill=\"{}\" stroke=\"#fff\" \
             stroke-width=\"0.5\"><title>{}: {} ticks</title></rect>",
            colour(event),
            escape(event.name()),
            end - record.time
        );
        let row = (0..ROWS).find(|row| ends[*row] < left).unwrap_or(0);
        ends[row] = left + 16.0;
        let _ = writeln!(
            svg,
            "<text x=\"{left:.1}\" y=\"{:.1}\" font-size=\"9\">{}</text>",
            top - 3.0 - ROW * row as f64,
            index + 1
        );
    }
}

/// What the numbers mean.
fn list(svg: &mut String, records: &[Record], start: u64, top: f64) {
    let rows = records.len().div_ceil(COLUMNS).max(1);
    for (index, record) in records.iter().enumerate() {
        let Some(event) = Event::from_number(record.event) else { continue };
        let x = 8.0 + (index / rows) as f64 * (WIDTH / COLUMNS as f64);
        let y = top + LINE * (index % rows) as f64;
        let _ = writeln!(
            svg,
            "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"9\" height=\"9\" fill=\"{}\"/>\n<text x=\"{:.1}\" y=\"{y:.1}\">{}: {} on {}, {} {}</text>",
            y - 9.0,
            colour(event),
            x + 14.0,
            index + 1,
            record.time - start,
            record.processor,
            escape(event.name()),
            escape(&Words(record).to_string())
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(time: u64, processor: u16, event: Event, a: u64) -> Record {
        Record { time, processor, thread: 0x3a, event: event as u8, a, ..Record::EMPTY }
    }

    /// Every event has its number, its bar and its line; what wakes another is joined to the
    /// waking.
    #[test]
    fn events_and_what_is_sent_are_shown() {
        let records = [
            record(1000, 1, Event::Idle, 0),
            record(1100, 0, Event::IpcCall, 0x10),
            record(1200, 0, Event::Post, 1),
            record(1300, 1, Event::Wake, 33),
            record(1400, 1, Event::IpcTransfer, 0x20),
        ];
        let picture = svg(&records);
        assert_eq!(picture.matches("<title>").count(), 5);
        assert_eq!(picture.matches("stroke-dasharray").count(), 1);
        for text in ["processor 0", "processor 1", "420 ticks", "4: 300 on 1, wake", "<title>post: "] {
            assert!(picture.contains(text), "{text} in {picture}");
        }
        // The call begins a quarter of the way, the wait of the other at the left end.
        assert!(picture.contains("<rect x=\"64.0\" y=\"118.0\""), "{picture}");
    }

    #[test]
    fn no_events_make_an_empty_picture() {
        assert!(svg(&[]).ends_with("</svg>\n"));
    }
}
