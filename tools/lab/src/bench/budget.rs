//! Upper bounds of the cost of operations (`bench/references.toml`): the targets of the table of
//! operations, and budgets of events that an instruction count hides, such as serialising
//! instructions and locked operations.

use super::references::References;
use super::report::{Report, number, tenths};
use anyhow::{Result, bail};

/// The tolerance of each budget: for rounding, and for a timer tick in many operations.
const SLACK: f64 = 0.05;

/// Returns an error if the report of `benchmark` exceeds a budget, or lacks a region that has one.
pub(super) fn keep(benchmark: &str, report: &Report, references: &References) -> Result<()> {
    let mut wrong = exceeded(report, references);
    let budgets = references.budgets.iter().filter(|budget| budget.benchmark == benchmark);
    let missing = |name: &&String| !report.regions.iter().any(|region| region.name == **name);
    let names = budgets.flat_map(|budget| &budget.regions).filter(missing);
    wrong.extend(names.map(|name| format!("{name} has a budget and is not counted")));
    if !wrong.is_empty() {
        bail!(
            "nothing is published, because of what bench/references.toml allows at most:\n  {}",
            wrong.join("\n  ")
        );
    }
    Ok(())
}

/// The regions that execute more than their budget, each as a sentence.
pub(super) fn exceeded(report: &Report, references: &References) -> Vec<String> {
    let mut wrong = Vec::new();
    for budget in &references.budgets {
        for region in report.regions.iter().filter(|region| budget.regions.contains(&region.name)) {
            for (counter, most) in &budget.at_most {
                let count = region.of(&region.kernel, counter) + region.of(&region.user, counter);
                if count > most + SLACK {
                    let (name, count) = (&region.name, number(tenths(count)));
                    wrong.push(format!("{name}: {counter} {count} times an operation, at most {most}"));
                }
            }
        }
    }
    wrong
}

/// The operations that cost more than their target and are not known to, each as a sentence.
pub(super) fn above_target(report: &Report, references: &References) -> Vec<String> {
    let mut above = Vec::new();
    for operation in references.operations.iter().filter(|operation| !operation.missed) {
        let Some(target) = operation.target else { continue };
        for value in operation.values(&report.series).into_iter().flatten() {
            if value > target + SLACK {
                let (name, value, unit) = (&operation.name, number(value), operation.unit());
                above.push(format!("{name}: {value} {unit}, to reach {target}"));
            }
        }
    }
    above
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::regions::Region;
    use crate::bench::series::{collect, measured};

    fn references() -> References {
        toml::from_str(
            "[[budget]]\nbenchmark = \"kernel\"\nregions = [\"send\"]\nat_most = { swapgs = 2, locked = 0 }\n\
             [[operation]]\nname = \"a message\"\ntests = [\"send\"]\nat = [0]\ntarget = 80\n",
        )
        .unwrap()
    }

    fn report(kernel: &[(&str, u64)], cost: f64) -> Report {
        let region = Region {
            name: "send".into(),
            processor: 0,
            operations: 100,
            user: [("swapgs".to_string(), 0)].into(),
            kernel: kernel.iter().map(|&(counter, count)| (counter.to_string(), count)).collect(),
        };
        Report { series: collect(&[measured("send", 0.0, cost)]), regions: vec![region], ..Report::default() }
    }

    #[test]
    fn a_budget_is_kept_or_the_excess_is_named() {
        assert!(
            keep("kernel", &report(&[("swapgs", 200), ("instructions", 9000)], 80.0), &references()).is_ok()
        );
        for (counts, reason) in [
            (&[("swapgs", 200), ("locked", 100)][..], "send: locked 1 times an operation, at most 0"),
            (&[("swapgs", 300)], "send: swapgs 3 times"),
        ] {
            let said = keep("kernel", &report(counts, 80.0), &references()).unwrap_err().to_string();
            assert!(said.starts_with("nothing is published") && said.contains(reason), "{said}");
        }
    }

    #[test]
    fn a_region_with_a_budget_must_be_counted() {
        let said = keep("kernel", &Report::default(), &references()).unwrap_err().to_string();
        assert!(said.contains("send has a budget and is not counted"), "{said}");
        assert!(keep("mapping", &Report::default(), &references()).is_ok());
    }

    #[test]
    fn a_target_is_reached_or_known_to_be_missed() {
        let mut references = references();
        assert_eq!(above_target(&report(&[], 80.0), &references), [""; 0]);
        assert_eq!(
            above_target(&report(&[], 81.0), &references),
            ["a message: 81 instructions, to reach 80"]
        );
        references.operations[0].missed = true;
        assert_eq!(above_target(&report(&[], 81.0), &references), [""; 0]);
    }
}
