//! What support for several processors costs on one: the operations of the usual kernel, which is
//! for several processors, and of the same kernel built for one. The latter is built for this table
//! only.

use super::references::{Operation, References};
use super::report::{Report, number};
use std::fmt::Write as _;

/// In Markdown: what each operation that both kernels were measured with costs on `several`, on
/// `one`, and the difference.
pub(super) fn table(several: &Report, one: &Report, references: &References) -> String {
    let mut table = String::from(
        "| operation | for several processors | for one | more | Pistachio | seL4 |\n|---|---|---|---|---|---|\n",
    );
    for operation in &references.operations {
        let pairs = operation.values(&several.series).into_iter().zip(operation.values(&one.series));
        let Some(pairs) = pairs.map(|(several, one)| Some((several?, one?))).collect::<Option<Vec<_>>>()
        else {
            continue;
        };
        if operation.counter() != "instructions" {
            continue;
        }
        let join = |show: fn(&(f64, f64)) -> String| pairs.iter().map(show).collect::<Vec<_>>().join(" / ");
        let _ = writeln!(
            table,
            "| {} | {} | {} | {} | {} | {} |",
            operation.name,
            join(|pair| number(tenths(pair.0))),
            join(|pair| number(tenths(pair.1))),
            join(|pair| number(tenths(pair.0 - pair.1))),
            more(operation, |operation| operation.pistachio_processors),
            more(operation, |operation| operation.sel4_processors),
        );
    }
    table
}

fn more(operation: &Operation, relative: fn(&Operation) -> Option<f64>) -> String {
    relative(operation).map_or_else(String::new, number)
}

/// No more digits than the measurement has.
fn tenths(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::series::{collect, measured};

    #[test]
    fn a_row_has_both_and_the_difference() {
        let report = |value| Report { series: collect(&[measured("send", 0.0, value)]), ..Report::default() };
        let references: References = toml::from_str(
            "[[operation]]\nname = \"a message\"\ntests = [\"send\"]\nat = [0]\nsel4_processors = 82\n\
             [[operation]]\nname = \"not measured\"\ntests = [\"other\"]\n",
        )
        .unwrap();
        let table = table(&report(80.0), &report(77.5), &references);
        assert!(table.ends_with("| a message | 80 | 77.5 | 2.5 |  | 82 |\n"), "{table}");
        assert_eq!(table.lines().count(), 3);
    }
}
