//! The arguments of the plugin: the output file, what is counted, and the shape of the modelled
//! caches.

use crate::cache::Geometry;

/// The settings of the plugin, from its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The file to which the counts are written, one JSON object on each line.
    pub out: String,
    /// The level-1 instruction cache.
    pub l1i: Geometry,
    /// The level-1 data cache.
    pub l1d: Geometry,
    /// The level-2 cache, which has instructions and data.
    pub l2: Geometry,
    /// The TLB of instruction fetches.
    pub itlb: Geometry,
    /// The TLB of data accesses.
    pub dtlb: Geometry,
    /// Whether only latency is measured: for how long the kernel does not look for interrupts, from
    /// the first user instruction to the end.
    pub latency: bool,
    /// Whether only the work of each processor is counted, without polling. That is fast.
    pub work: bool,
    /// Whether the bytes are counted that string instructions write, together with the work.
    pub bulk: bool,
    /// The file to which is written how often each instruction was executed in each region; empty
    /// if that is not wanted.
    pub profile: String,
}

impl Settings {
    /// Reads `key=value` arguments: `out=FILE` (required), `l1i`, `l1d`, `l2` = BYTES/WAYS, `itlb`,
    /// `dtlb` = ENTRIES/WAYS, `latency=on`, `work=on`, `bulk=on`, `profile=FILE`. `./mac bench`
    /// always gives all geometries; the defaults here are for a QEMU that is started by hand.
    ///
    /// # Errors
    /// A sentence that says which argument is wrong, and why.
    pub fn parse<'a>(arguments: impl Iterator<Item = &'a str>) -> Result<Settings, String> {
        let mut settings = Settings {
            out: String::new(),
            l1i: Geometry { sets: 64, ways: 8, line_log2: 6 },
            l1d: Geometry { sets: 64, ways: 8, line_log2: 6 },
            l2: Geometry { sets: 1024, ways: 16, line_log2: 6 },
            itlb: Geometry { sets: 16, ways: 8, line_log2: 12 },
            dtlb: Geometry { sets: 16, ways: 4, line_log2: 12 },
            latency: false,
            work: false,
            bulk: false,
            profile: String::new(),
        };
        for argument in arguments {
            let (key, value) =
                argument.split_once('=').ok_or_else(|| format!("`{argument}` is not key=value"))?;
            match key {
                "out" => settings.out = value.to_string(),
                "l1i" => settings.l1i = geometry(value, 6)?,
                "l1d" => settings.l1d = geometry(value, 6)?,
                "l2" => settings.l2 = geometry(value, 6)?,
                "itlb" => settings.itlb = geometry(value, 12)?,
                "dtlb" => settings.dtlb = geometry(value, 12)?,
                "latency" => settings.latency = value == "on",
                "work" => settings.work = value == "on",
                "bulk" => settings.bulk = value == "on",
                "profile" => settings.profile = value.to_string(),
                _ => {
                    return Err(format!(
                        "unknown argument `{key}`; there are out, l1i, l1d, l2, itlb, dtlb, latency, work, bulk, \
                         profile"
                    ));
                }
            }
        }
        if settings.out.is_empty() {
            return Err("out=FILE is missing".to_string());
        }
        Ok(settings)
    }
}

/// Parses `SIZE/WAYS`. The size of a TLB (`line_log2` 12) is in entries.
fn geometry(value: &str, line_log2: u32) -> Result<Geometry, String> {
    let parsed = value.split_once('/').and_then(|(size, ways)| {
        let (size, ways) = (size.parse::<usize>().ok()?, ways.parse::<usize>().ok()?);
        let bytes = if line_log2 == 12 { size.checked_shl(12)? } else { size };
        Geometry::of_size(bytes, ways, line_log2)
    });
    parsed.ok_or_else(|| format!("`{value}` is not SIZE/WAYS with a power of two of sets"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Settings, String> {
        Settings::parse(arguments.iter().copied())
    }

    #[test]
    fn sizes_are_read() {
        let settings = parse(&["out=x.jsonl", "l1d=49152/12", "dtlb=64/4"]).unwrap();
        assert_eq!(settings.out, "x.jsonl");
        assert_eq!(settings.l1d, Geometry { sets: 64, ways: 12, line_log2: 6 });
        assert_eq!(settings.dtlb, Geometry { sets: 16, ways: 4, line_log2: 12 });
    }

    #[test]
    fn mistakes_are_named() {
        assert!(parse(&[]).unwrap_err().contains("out=FILE"));
        assert!(parse(&["out=x", "l3=1/1"]).unwrap_err().contains("l3"));
        assert!(parse(&["out=x", "l2=1000/3"]).unwrap_err().contains("1000/3"));
        assert!(parse(&["out"]).unwrap_err().contains("key=value"));
    }
}
