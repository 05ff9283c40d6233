//! The cost of support for several processors on a machine with one: operations of the usual
//! kernel, compared with the same kernel built for one processor. The latter is built only for this
//! table.

use super::references::References;
use super::report::{self, Report, number_or, numbers, tenths};

/// The table in Markdown: for each operation that was measured with both kernels, its cost on
/// `several`, its cost on `one`, and the difference.
pub(super) fn table(several: &Report, one: &Report, references: &References) -> String {
    let counted = references.operations.iter().filter(|operation| operation.counter() == "instructions");
    let rows = counted.filter_map(|operation| {
        let values =
            |report: &Report| -> Option<Vec<f64>> { operation.values(&report.series).into_iter().collect() };
        let (several, one) = (values(several)?, values(one)?);
        let more = several.iter().zip(&one).map(|(several, one)| tenths(several - one));
        let relatives = [operation.pistachio_processors, operation.sel4_processors];
        let [pistachio, sel4] = relatives.map(|more| number_or(more, ""));
        let [several_cell, one_cell] =
            [&several, &one].map(|values| numbers(values.iter().copied().map(tenths)));
        Some([operation.name.clone(), several_cell, one_cell, numbers(more), pistachio, sel4])
    });
    let headings = ["operation", "for several processors", "for one", "more", "Pistachio", "seL4"];
    report::table(&headings, rows)
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
