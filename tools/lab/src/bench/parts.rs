//! The parts of the system in which a profile's instructions were executed: a stacked bar for each
//! operation.

use super::profile::Profiled;
use super::report::{self, number_or, tenths, without_place};
use super::series::{self, Measurement};
use super::{Report, empty_report, published};
use crate::chart::{self, Row};
use anyhow::Result;
use mac_build::{build, tree};
use mac_machine::symbolise::Place;
use std::collections::BTreeMap;

/// Parts with less than this share of every operation are joined as [`REST`].
const LEAST: f64 = 0.02;
const REST: &str = "everything else";

/// The part of the system to which an instruction belongs: for the kernel, a subject; for other
/// programs, a library.
fn part(place: &Place) -> String {
    let outer = place.functions.first().map_or("?", String::as_str);
    let path = outer.trim_start_matches(['<', '&']);
    let crate_name = path.split([':', ' ']).next().unwrap_or(path);
    match place.image.as_str() {
        "kernel" => match path {
            // Rust functions that entry code calls have names without a path.
            "short_map_control" | "short_unmap" => "kernel: mappings and memory".into(),
            "read_registers" | "read_schedule" => "kernel: the rest".into(),
            _ if !path.contains("::") && !["memcpy", "memset", "memmove", "memcmp"].contains(&path) => {
                "kernel: entry, exit and fast path".into()
            }
            _ if path.starts_with("kernel::mapping") || path.starts_with("kernel::memory") => {
                "kernel: mappings and memory".into()
            }
            _ if !path.contains("::") => "kernel: copying and clearing".into(),
            _ => "kernel: the rest".into(),
        },
        "?" => "kernel: entry, exit and fast path".into(),
        "unix" => match crate_name {
            "mach_l4" | "l4" | "x2" => "server: machine layer (messages, events, threads)".into(),
            "mach" => "server: Mach library (memory, tasks)".into(),
            "memcpy" | "memset" | "memmove" | "memcmp" | "compiler_builtins" => {
                "server: copying and clearing".into()
            }
            "rt" | "alloc" | "talc" => "server: executor and heap".into(),
            _ => "server: Unix".into(),
        },
        "root" => "root".into(),
        image => format!("program {image}"),
    }
}

/// The number of instructions in each part, per operation.
fn report(profiles: &[Profiled]) -> Result<Report> {
    let mut sums: Vec<BTreeMap<String, f64>> = Vec::new();
    for (name, profile) in profiles {
        let mut parts = BTreeMap::new();
        for (place, count) in profile {
            *parts.entry(part(place)).or_default() += *count as f64 / name.operations.max(1) as f64;
        }
        sums.push(parts);
    }
    let matters = |part: &String| {
        sums.iter().any(|parts| {
            let total: f64 = parts.values().sum();
            parts.get(part).is_some_and(|value| *value >= LEAST * total)
        })
    };
    let mut measurements = Vec::new();
    for (index, ((name, _), parts)) in profiles.iter().zip(&sums).enumerate() {
        let mut shown: BTreeMap<String, f64> = BTreeMap::new();
        for (part, value) in parts {
            *shown.entry(if matters(part) { part.clone() } else { REST.into() }).or_default() += value;
        }
        let test = format!("{index:02} {}", name.region);
        let single = |(part, value): (String, f64)| Measurement::single(test.clone(), &part, tenths(value));
        measurements.extend(shown.into_iter().map(single));
    }
    Ok(Report { series: series::collect(&measurements), ..empty_report()? })
}

/// The operations in order, each with its parts.
fn operations(report: &Report) -> Vec<(&str, BTreeMap<&str, f64>)> {
    let mut operations: Vec<(&str, BTreeMap<&str, f64>)> = Vec::new();
    for series in &report.series {
        if operations.last().is_none_or(|(test, _)| *test != series.test) {
            operations.push((&series.test, BTreeMap::new()));
        }
        if let Some((_, parts)) = operations.last_mut() {
            parts.insert(&series.counter, series.smallest().value);
        }
    }
    operations.iter_mut().for_each(|(test, _)| *test = without_place(test));
    operations
}

/// The names of the parts, those of the kernel first.
fn names<'a>(operations: &[(&str, BTreeMap<&'a str, f64>)]) -> Vec<&'a str> {
    let mut names: Vec<&str> = operations.iter().flat_map(|(_, parts)| parts.keys().copied()).collect();
    names.sort_unstable_by_key(|name| (*name == REST, *name));
    names.dedup();
    names
}

/// The table in Markdown: a row for each part, a column for each operation.
pub(super) fn table(report: &Report) -> String {
    let operations = operations(report);
    let headings = ["part"].into_iter().chain(operations.iter().map(|(name, _)| *name));
    let cells = |cell: &dyn Fn(&BTreeMap<&str, f64>) -> Option<f64>| {
        let cells = operations.iter().map(|(_, parts)| number_or(cell(parts).map(f64::round), ""));
        cells.collect::<Vec<_>>()
    };
    let parts = names(&operations).into_iter().map(|part| (part, cells(&|parts| parts.get(part).copied())));
    let sum = [("**all**", cells(&|parts| Some(parts.values().sum())))];
    let rows = parts.chain(sum).map(|(name, cells)| [vec![name.into()], cells].concat());
    report::table(&headings.collect::<Vec<_>>(), rows)
}

/// The picture of the parts: each operation is a bar of the same length, divided by shares.
pub(super) fn svg(report: &Report) -> Result<String> {
    let operations = operations(report);
    let names = names(&operations);
    let row = |(name, parts): &(&str, BTreeMap<&str, f64>)| {
        let total = parts.values().sum::<f64>().max(1.0);
        let share = |(part, name): (usize, &&str)| Some((0, part, parts.get(name)? / total));
        Row {
            name: (*name).into(),
            lanes: vec![String::new()],
            pieces: names.iter().enumerate().filter_map(share).collect(),
            sum: format!("{total:.0} instructions"),
        }
    };
    chart::rows(&operations.iter().map(row).collect::<Vec<_>>(), &names, 1.0)
}

/// Writes the parts of a profile to `target/bench` or, with `publish`, into the book.
pub(super) fn write(name: &str, profiles: &[Profiled], publish: bool) -> Result<()> {
    let (report, name) = (report(profiles)?, format!("{name}-parts"));
    println!("\n{}", table(&report));
    if publish {
        return published::write(&name, &report);
    }
    let picture = tree::target().join("bench").join(format!("{name}.svg"));
    build::write_if_changed(&picture, svg(&report)?.as_bytes())?;
    println!("{}", picture.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::profile::Profile;
    use crate::bench::regions::Name;

    fn place(image: &str, function: &str) -> Place {
        Place { image: image.into(), functions: vec![function.into(), "core::ptr::read".into()] }
    }

    #[test]
    fn functions_belong_to_parts() {
        for (image, function, expected) in [
            ("kernel", "fast_ipc", "kernel: entry, exit and fast path"),
            ("kernel", "short_map_control", "kernel: mappings and memory"),
            ("kernel", "memcpy", "kernel: copying and clearing"),
            ("kernel", "kernel::mapping::map::map", "kernel: mappings and memory"),
            ("kernel", "kernel::dispatch::dispatch", "kernel: the rest"),
            (
                "unix",
                "<mach_l4::Worker as core::ops::Drop>::drop",
                "server: machine layer (messages, events, threads)",
            ),
            ("unix", "unix_server::calls::read", "server: Unix"),
            ("calls", "syscall", "program calls"),
        ] {
            assert_eq!(part(&place(image, function)), expected);
        }
    }

    #[test]
    fn the_table_has_every_part_and_the_sum() {
        let profile = Profile::from([
            (place("kernel", "fast_ipc"), 700),
            (place("unix", "unix::read"), 300),
            (place("root", "root::run"), 5),
        ]);
        let name = Name { region: "read".into(), operations: 10 };
        let report = report(&[(name, profile)]).unwrap();
        let rows: Vec<String> = table(&report).lines().skip(2).map(String::from).collect();
        assert_eq!(
            rows,
            [
                "| kernel: entry, exit and fast path | 70 |",
                "| server: Unix | 30 |",
                "| everything else | 1 |",
                "| **all** | 101 |"
            ]
        );
        assert!(svg(&report).unwrap().contains("server: Unix"));
    }
}
