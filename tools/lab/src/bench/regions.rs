//! The counts of the counting plugin (tools/counters) for the regions that a benchmark marks, per
//! operation.
//!
//! A benchmark that marks a region prints a line that names it, in the order of the regions:
//! `{"region":"ipc-round-trip","operations":64}`.

use super::series::Measurement;
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The name of a marked region, as a benchmark prints it.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(crate) struct Name {
    pub(super) region: String,
    /// How many operations ran in the region.
    pub(super) operations: u64,
}

/// A line of the plugin: a region on one processor. Some counters are no numbers.
#[derive(Deserialize)]
struct Counts {
    processor: u64,
    user: Map<String, Value>,
    kernel: Map<String, Value>,
}

/// The counts of one region.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
pub(crate) struct Region {
    /// The benchmark's name of the region.
    pub name: String,
    pub processor: u64,
    /// How many operations ran in the region; the counts are the sum over all of them.
    pub(crate) operations: u64,
    pub user: BTreeMap<String, u64>,
    pub kernel: BTreeMap<String, u64>,
}

impl Region {
    /// A count of user and kernel together, per operation. Lines and pages, which operations share,
    /// are not divided.
    pub(crate) fn of(&self, mode: &BTreeMap<String, u64>, counter: &str) -> f64 {
        let count = mode.get(counter).copied().unwrap_or(0) as f64;
        if is_shared(counter) { count } else { count / self.operations as f64 }
    }
}

/// Whether a counter counts different lines or pages, which operations share.
pub(crate) fn is_shared(counter: &str) -> bool {
    matches!(counter, "instruction_lines" | "data_lines" | "data_pages")
}

/// Whether a counter depends on the addresses of programs and their data.
pub(crate) fn is_of_layout(counter: &str) -> bool {
    is_shared(counter) || counter.ends_with("_misses")
}

/// Whether the processor waited in a region for a timer or a device, so that counts depend on when
/// the wait began.
pub(crate) fn waits(region: &Region) -> bool {
    region.kernel.get("halt").is_some_and(|&halts| halts > 0)
}

/// Joins the names with the plugin's output, which has a line for each region and processor.
pub(crate) fn join(names: &[Name], output: &str) -> Result<Vec<Region>> {
    let mut regions = Vec::new();
    // A region's number is a byte that benchmarks need not change: a line of processor 0 begins the
    // next region.
    let mut index: Option<usize> = None;
    let mut last = None;
    for line in output.lines().filter(|line| !line.is_empty()) {
        let Counts { processor, user, kernel } =
            serde_json::from_str(line).context("a line of the counting plugin")?;
        if last.is_none_or(|last| processor <= last) {
            index = Some(index.map_or(0, |index| index + 1));
        }
        last = Some(processor);
        let at = index.unwrap_or(0);
        let Some(name) = names.get(at) else {
            bail!("the plugin counted more regions than the {} that the benchmark names", names.len());
        };
        let numbers = |counts: Map<String, Value>| {
            counts.into_iter().filter_map(|(name, count)| Some((name, count.as_u64()?))).collect()
        };
        regions.push(Region {
            name: name.region.clone(),
            processor,
            operations: name.operations.max(1),
            user: numbers(user),
            kernel: numbers(kernel),
        });
    }
    let counted = index.map_or(0, |index| index + 1);
    if counted != names.len() {
        bail!("the benchmark names {} regions, the plugin counted {counted}", names.len());
    }
    Ok(regions)
}

/// The work of all processors together in the regions called `TEST at PARAMETER`, per operation:
/// instructions without polling, and interrupts taken.
pub(crate) fn of_all_processors(regions: &[Region]) -> Result<Vec<Measurement>> {
    let mut measurements = Vec::new();
    for parts in regions.chunk_by(|a, b| a.name == b.name) {
        let name = &parts[0].name;
        let named = name.rsplit_once(" at ").and_then(|(test, at)| Some((test, at.parse::<f64>().ok()?)));
        let (test, parameter) = named.with_context(|| format!("region {name:?} has no parameter"))?;
        for counter in ["instructions", "interrupts"] {
            let value =
                parts.iter().map(|part| part.of(&part.user, counter) + part.of(&part.kernel, counter)).sum();
            measurements.push(Measurement { test: test.into(), parameter, counter: counter.into(), value });
        }
    }
    Ok(measurements)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(region: &str) -> Name {
        Name { region: region.into(), operations: 10 }
    }

    const OUTPUT: &str = concat!(
        "{\"region\":0,\"processor\":0,\"user\":{\"instructions\":20},\"kernel\":{\"instructions\":50,\"locked\":10,\"data_lines\":7}}\n",
        "{\"region\":0,\"processor\":1,\"user\":{},\"kernel\":{}}\n",
        "{\"region\":0,\"processor\":0,\"user\":{},\"kernel\":{\"locked\":1}}\n"
    );

    #[test]
    fn regions_get_their_names_in_order() {
        let regions = join(&[name("a"), name("b")], OUTPUT).unwrap();
        let names: Vec<_> = regions.iter().map(|region| (region.name.as_str(), region.processor)).collect();
        assert_eq!(names, [("a", 0), ("a", 1), ("b", 0)]);
        assert_eq!(regions[0].of(&regions[0].kernel, "instructions"), 5.0);
        assert_eq!(regions[0].of(&regions[0].kernel, "data_lines"), 7.0);
        assert_eq!(regions[0].of(&regions[0].user, "locked"), 0.0);
    }

    #[test]
    fn a_missing_or_additional_region_is_an_error() {
        assert!(join(&[name("a")], OUTPUT).is_err());
        assert!(join(&[name("a"), name("b"), name("c")], OUTPUT).is_err());
        assert!(join(&[], "").unwrap().is_empty());
        assert!(join(&[name("a")], "nonsense").is_err());
    }

    #[test]
    fn what_all_processors_did_is_added_up_by_parameter() {
        let output = "{\"region\":0,\"processor\":0,\"user\":{\"instructions\":20},\"kernel\":{\"instructions\":50}}\n\
                      {\"region\":0,\"processor\":1,\"user\":{},\"kernel\":{\"instructions\":30,\"interrupts\":10}}\n";
        let sums = of_all_processors(&join(&[name("a at 4")], output).unwrap()).unwrap();
        let shown: Vec<_> =
            sums.iter().map(|sum| (&*sum.test, sum.parameter, &*sum.counter, sum.value)).collect();
        assert_eq!(shown, [("a", 4.0, "instructions", 10.0), ("a", 4.0, "interrupts", 1.0)]);
        assert!(
            of_all_processors(&join(&[name("a")], "{\"processor\":0,\"user\":{},\"kernel\":{}}").unwrap())
                .is_err()
        );
    }
}
