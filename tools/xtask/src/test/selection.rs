//! Selects the suites that a run of the tests boots.

use crate::ids::Sources;
use anyhow::Result;
use mac_machine::suites::{self, Excluded, Overrides, Run, Suite};
use mac_machine::tap;

/// The filter of the command line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Filter<'a> {
    /// The id of a test.
    Id(&'a str),
    /// A part of a name: of a suite, module, script or id, or of a test on the host.
    Part(&'a str),
}

impl<'a> Filter<'a> {
    pub(super) fn of(text: &'a str) -> Filter<'a> {
        if tap::is_id(text) { Filter::Id(text) } else { Filter::Part(text) }
    }
}

/// The suites that the filter selects.
#[derive(Default)]
pub(super) struct Selection {
    pub(super) suites: Vec<Suite>,
    /// Selected suites that are not run, and why.
    excluded: Vec<Excluded>,
}

impl Selection {
    /// Selects the suites that match the filter. Complete campaigns are selected only with
    /// `campaigns`, or if the filter is their name.
    pub(super) fn of(filter: Option<&Filter<'_>>, campaigns: bool) -> Result<Selection> {
        let mut all = suites::read(suites::TESTS)?;
        all.extend(suites::read(suites::GUESTS)?);
        let mut selection = Selection::default();
        let sources = Sources::find()?;
        for suite in all {
            let is_meant = match filter {
                None => true,
                Some(Filter::Id(id)) => sources.report(&suite, id)?,
                Some(Filter::Part(part)) => suite.matches(part),
            };
            let is_named = matches!(filter, Some(Filter::Part(name)) if suite.name == *name);
            let exclude = |reason: &str| Excluded { name: suite.name.clone(), reason: reason.into() };
            if !is_meant {
            } else if let Some(reason) = &suite.pending {
                selection.excluded.push(exclude(reason));
            } else if suite.campaign && !campaigns && !is_named {
                selection.excluded.push(exclude("a campaign in full, for --all"));
            } else {
                selection.suites.push(suite);
            }
        }
        Ok(selection)
    }

    /// Whether the filter selects no suite.
    pub(super) fn is_empty(&self) -> bool {
        self.suites.is_empty() && self.excluded.is_empty()
    }

    /// The runs of the selected suites, and the suites that cannot be run.
    pub(super) fn runs(&self, overrides: &Overrides) -> (Vec<Run>, Vec<Excluded>) {
        let mut runs = Vec::new();
        let mut excluded = self.excluded.clone();
        for suite in &self.suites {
            match suite.runs(overrides) {
                Ok(more) => runs.extend(more),
                Err(suite) => excluded.push(suite),
            }
        }
        (runs, excluded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(filter: &str, campaigns: bool) -> Vec<String> {
        let selection = Selection::of(Some(&Filter::of(filter)), campaigns).unwrap();
        selection.suites.into_iter().map(|suite| suite.name).collect()
    }

    #[test]
    fn a_filter_is_a_part_of_a_name_or_an_id() {
        assert_eq!(Filter::of("FST0006"), Filter::Id("FST0006"));
        assert_eq!(Filter::of("fast-path"), Filter::Part("fast-path"));
        assert_eq!(names("x2/kip", false), ["x2/kip"]);
        assert_eq!(names("SIG0001", false), ["x2/sigma0"]);
        assert!(names("no-such-suite", true).is_empty() && names("FST9999", true).is_empty());
    }

    #[test]
    fn campaigns_are_run_in_full_when_they_are_wanted_or_named() {
        let long = "guests/generations-all";
        assert!(!names("guests/generations", false).contains(&long.to_string()));
        assert!(names("guests/generations", true).contains(&long.to_string()));
        assert_eq!(names(long, false), [long]);
    }
}
