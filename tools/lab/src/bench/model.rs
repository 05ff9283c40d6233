//! The model of caches and TLBs that the counting plugin uses (`tools/counters`), and how the
//! command line changes it.

use anyhow::{Result, bail};

/// The parts of the model: the plugin's name for each, its size and its ways, and its name in
/// reports. Sizes are in bytes; those of TLBs are in entries.
const PARTS: [(&str, u64, u64, &str); 5] = [
    ("l1i", 32 << 10, 8, "L1I"),
    ("l1d", 32 << 10, 8, "L1D"),
    ("l2", 1 << 20, 16, "L2"),
    ("itlb", 128, 8, "ITLB"),
    ("dtlb", 64, 4, "DTLB"),
];
/// The size of a cache line in bytes.
const LINE: u64 = 64;

/// A size and shape of a part that replaces the usual one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Part {
    name: &'static str,
    size: u64,
    ways: u64,
}

/// Parses `PART=SIZE/WAYS`.
pub(super) fn part(text: &str) -> Result<Part> {
    let names = || PARTS.map(|(name, ..)| name).join(", ");
    let parsed = text.split_once('=').and_then(|(name, shape)| {
        let (size, ways) = shape.split_once('/')?;
        Some((name, size.parse::<u64>().ok()?, ways.parse::<u64>().ok()?))
    });
    let Some((name, size, ways)) = parsed else {
        bail!("it is not PART=SIZE/WAYS, as in l1d=49152/12");
    };
    let Some((name, ..)) = PARTS.into_iter().find(|(known, ..)| *known == name) else {
        bail!("there is no {name}, only {}", names());
    };
    let entries = if name.ends_with("tlb") { size } else { size / LINE };
    let bytes = if name.ends_with("tlb") { 1 } else { LINE };
    let sets = entries.checked_div(ways).unwrap_or(0);
    if !sets.is_power_of_two() || sets * ways * bytes != size {
        bail!("{size} in {ways} ways is not a power of two of sets of lines of 64 bytes, or of entries");
    }
    Ok(Part { name, size, ways })
}

/// All parts of the model, with those in `others` replaced.
fn parts(others: &[Part]) -> impl Iterator<Item = (Part, &'static str)> {
    PARTS.into_iter().map(|(name, size, ways, title)| {
        let other = others.iter().rfind(|other| other.name == name);
        (other.cloned().unwrap_or(Part { name, size, ways }), title)
    })
}

/// The model as arguments of the plugin, each after a comma.
pub(super) fn arguments(others: &[Part]) -> String {
    parts(others).map(|(Part { name, size, ways }, _)| format!(",{name}={size}/{ways}")).collect()
}

/// Describes the model in a report.
pub(super) fn describe(others: &[Part]) -> String {
    let describe = |(part, title): (Part, &str)| {
        let unit = if part.name.ends_with("tlb") { "pages" } else { "bytes" };
        format!("{title} {} {unit} in {} ways", part.size, part.ways)
    };
    parts(others).map(describe).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_asked_for_by_name_and_shape() {
        let others = [part("l1d=49152/12").unwrap(), part("dtlb=32/4").unwrap()];
        assert_eq!(arguments(&others), ",l1i=32768/8,l1d=49152/12,l2=1048576/16,itlb=128/8,dtlb=32/4");
        assert!(describe(&others).contains("L1D 49152 bytes in 12 ways, L2 1048576 bytes in 16 ways"));
    }

    #[test]
    fn what_is_no_model_is_refused_and_the_reason_is_said() {
        for (text, reason) in [
            ("l1d", "as in l1d=49152/12"),
            ("l3=1024/1", "only l1i"),
            ("l1d=1000/8", "power of two"),
            ("l1d=32768/0", "power of two"),
            ("itlb=128/3", "power of two"),
        ] {
            let said = part(text).unwrap_err().to_string();
            assert!(said.contains(reason), "{text}: {said}");
        }
    }
}
