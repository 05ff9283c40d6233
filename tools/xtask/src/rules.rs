//! The index of rules: which tests show which rule of the interface.
//!
//! `docs/src/reference/rules.md` states the rules, one row to each; its last column is made here
//! from what the tests cite. A booted test of `tests! { ID [7.1, ABI 5] "sentence" function; }`
//! cites in brackets; everything else by `Rules: 7.1, ABI 5` in a comment: on the line of the
//! quoted id, or in the comment of a host test. A row may mark the clauses of its rule, `(a)`,
//! `(b)` and so on; then tests cite clauses, `7.1a` or `7.1ab`, and never the rule as a whole.
//! Rules and clauses that no test cites are listed in the caveats, with the reason. If other
//! chapters name tests, these must exist.

use anyhow::{Context, Result, bail};
use mac_build::{build, tree};
use mac_machine::tap::is_id;
use std::collections::{BTreeMap, BTreeSet};

const INDEX: &str = "docs/src/reference/rules.md";
/// The chapter with the conditions that leave the fast path, each with its tests.
const CONDITIONS: &str = "docs/src/ipc-fast-path.md";
const CAVEATS: &str = "docs/src/caveats.md";
/// The section of the caveats that lists the rules without a test, one `- **rule**: reason` to
/// each.
const WITHOUT: &str = "## Rules without a test";
/// The directories in which tests cite rules.
const PLACES: [&str; 5] = ["tests", "kernel/src", "lib/x2", "lib/l4", "servers/sigma0"];
const MARK: &str = "Rules:";

/// For each rule or clause, the tests that cite it, in order.
type Citations = BTreeMap<String, BTreeSet<String>>;

/// Writes the tests into the index.
pub(crate) fn update() -> Result<()> {
    let path = tree::root().join(INDEX);
    let index = renew(&tree::read(&path)?, &collect()?)?;
    build::write_if_changed(&path, index.as_bytes())
}

/// Checks that the index has the tests that cite each rule, and that the caveats list exactly the
/// rules that no test cites.
pub(crate) fn check() -> Result<()> {
    let read = |name: &str| tree::read(&tree::root().join(name));
    let index = read(INDEX)?;
    let citations = collect()?;
    if renew(&index, &citations)? != index {
        bail!("{INDEX} is not what the tests cite: ./mac rules");
    }
    let citable = rows(&index).flat_map(|row| row.citable());
    let untested: BTreeSet<String> = citable.filter(|rule| !citations.contains_key(rule)).collect();
    let caveats = read(CAVEATS)?;
    let listed: BTreeSet<String> = listed(&caveats).into_iter().map(String::from).collect();
    if let Some(rule) = untested.symmetric_difference(&listed).next() {
        let state = if listed.contains(rule) { "has tests, or is none," } else { "has no test" };
        bail!("rule {rule} {state} and the section \"{WITHOUT}\" of {CAVEATS} says otherwise");
    }
    match unknown_tests(&read(CONDITIONS)?, &citations).next() {
        Some(id) => bail!("{CONDITIONS} names {id}, which no test is called that cites a rule"),
        None => Ok(()),
    }
}

/// The tests that a chapter of the book names, but that cite no rule.
fn unknown_tests<'a>(chapter: &'a str, citations: &Citations) -> impl Iterator<Item = &'a str> {
    let words = chapter.split(|character: char| !character.is_ascii_alphanumeric());
    words.filter(|word| is_id(word) && !citations.values().any(|tests| tests.contains(*word)))
}

/// A row of the index.
struct Row<'a> {
    rule: &'a str,
    statement: &'a str,
}

impl<'a> Row<'a> {
    fn of(line: &'a str) -> Option<Self> {
        let mut cells = line.strip_prefix("| ")?.strip_suffix('|')?.split('|').map(str::trim);
        let rule = cells.next().filter(|rule| is_rule(rule))?;
        cells.next_back()?;
        Some(Self { rule, statement: cells.next()? })
    }

    /// The letters of the rule's clauses, in order.
    fn clauses(&self) -> impl Iterator<Item = char> {
        ('a'..='z').take_while(|letter| self.statement.contains(&format!("({letter}) ")))
    }

    /// What tests can cite: each clause, or the whole rule if it has no clauses.
    fn citable(&self) -> Vec<String> {
        let clauses: Vec<String> = self.clauses().map(|letter| format!("{}{letter}", self.rule)).collect();
        if clauses.is_empty() { vec![self.rule.into()] } else { clauses }
    }

    /// The content of the last column: the tests, by clauses if the rule has any.
    fn tests(&self, citations: &Citations) -> String {
        let tests = |rule: &str| {
            let tests = citations.get(rule).into_iter().flatten();
            tests.map(String::as_str).collect::<Vec<_>>().join(", ")
        };
        let clauses: Vec<String> = self
            .clauses()
            .map(|letter| match tests(&format!("{}{letter}", self.rule)) {
                tests if tests.is_empty() => format!("({letter}) none"),
                tests => format!("({letter}) {tests}"),
            })
            .collect();
        if clauses.is_empty() { tests(self.rule) } else { clauses.join("; ") }
    }
}

fn rows(index: &str) -> impl Iterator<Item = Row<'_>> {
    index.lines().filter_map(Row::of)
}

/// The index with its last column replaced according to `citations`.
fn renew(index: &str, citations: &Citations) -> Result<String> {
    let known: BTreeSet<String> = rows(index).flat_map(|row| row.citable()).collect();
    if let Some((rule, tests)) = citations.iter().find(|(rule, _)| !known.contains(*rule)) {
        let test = tests.iter().next().map_or("", |test| test);
        bail!("{INDEX} has no rule {rule}, which {test} cites (of a rule with clauses one is cited: 7.1a)");
    }
    let mut renewed = String::new();
    for line in index.lines() {
        if let Some(row) = Row::of(line) {
            let tests = row.tests(citations);
            let statement = &line[..line[..line.len() - 1].rfind('|').context("a row has three cells")?];
            renewed.push_str(&format!("{statement}| {tests} |"));
        } else {
            renewed.push_str(line);
        }
        renewed.push('\n');
    }
    Ok(renewed)
}

/// The rules that the caveats list as untested.
fn listed(caveats: &str) -> BTreeSet<&str> {
    let section = caveats.split_once(WITHOUT).map_or("", |(_, section)| section);
    let section = section.split("\n## ").next().unwrap_or_default();
    let bold = section.lines().filter_map(|line| line.strip_prefix("- **")?.split_once("**"));
    bold.flat_map(|(rules, _)| rules.split(", ")).collect()
}

/// Collects the citations of all tests.
fn collect() -> Result<Citations> {
    let mut citations = Citations::new();
    for place in PLACES {
        for path in tree::files(&tree::root().join(place), &[".rs", ".c", ".cc", ".toml"])? {
            cited(&tree::read(&path)?, &mut citations).with_context(|| path.display().to_string())?;
        }
    }
    Ok(citations)
}

/// Adds the citations in one file.
fn cited(text: &str, citations: &mut Citations) -> Result<()> {
    // Citations in a comment are kept until the test below the comment is found.
    let mut waiting: Vec<String> = Vec::new();
    for line in text.lines().map(str::trim) {
        let mark = line.find(MARK).map(|at| &line[at + MARK.len()..]);
        let (ids, rules): (Vec<String>, Vec<String>) = if let Some((id, rest)) = line.split_once(" [")
            && is_id(id)
            && let Some((rules, _)) = rest.split_once("] \"")
        {
            (vec![id.into()], parse(rules)?)
        } else if let Some(name) = line.strip_prefix("fn ").or_else(|| line.strip_prefix("pub fn ")) {
            let name = name.split('(').next().unwrap_or_default();
            (vec![format!("`{name}`")], std::mem::take(&mut waiting))
        } else if let Some(mark) = mark {
            let quoted: Vec<String> =
                line.split('"').skip(1).step_by(2).filter(|it| is_id(it)).map(String::from).collect();
            if quoted.is_empty() && line.starts_with("///") {
                waiting = parse(mark)?;
                continue;
            }
            (quoted, parse(mark)?)
        } else {
            continue;
        };
        for rule in rules {
            citations.entry(rule).or_default().extend(ids.iter().cloned());
        }
    }
    Ok(())
}

/// Parses a list of rules and clauses into single clauses: `7.1, ABI 5, EXT 2.1ab`.
fn parse(list: &str) -> Result<Vec<String>> {
    let mut rules = Vec::new();
    for item in list.trim().trim_end_matches(['.', '/', '*', ' ']).split(',').map(str::trim) {
        let rule = item.trim_end_matches(|character: char| character.is_ascii_lowercase());
        if !is_rule(rule) {
            bail!("{item:?} is no rule in {list:?}");
        }
        let clauses = &item[rule.len()..];
        if clauses.is_empty() {
            rules.push(rule.to_string());
        }
        rules.extend(clauses.chars().map(|letter| format!("{rule}{letter}")));
    }
    Ok(rules)
}

/// Whether a text has the form of a rule: `7.1`, `ABI 5`, `ABI 11.2`, `EXT 2.1`.
fn is_rule(text: &str) -> bool {
    let number = text.strip_prefix("ABI ").or_else(|| text.strip_prefix("EXT "));
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let parts = number.unwrap_or(text).split('.').map(is_number);
    let (count, all) = parts.fold((0, true), |(count, all), is| (count + 1, all && is));
    all && (count == 2 || count == 1 && text.starts_with("ABI "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn citations_of_every_kind_are_found() {
        let mut found = Citations::new();
        let text = "    IPC0001 [7.1, ABI 5] \"words\" words;\n\
                    { \"CAPI0001\", \"fpages\", fpages }, // Rules: 8.1, 7.10\n\
                    /// It does.\n/// Rules: 7.1, EXT 2.1.\n#[test]\nfn does_it() {\nfn other()
                    /// {\n";
        cited(text, &mut found).unwrap();
        let of = |rule: &str| found[rule].iter().cloned().collect::<Vec<_>>().join(" ");
        assert_eq!(of("7.1"), "IPC0001 `does_it`");
        assert_eq!([of("ABI 5"), of("8.1"), of("7.10")], ["IPC0001", "CAPI0001", "CAPI0001"]);
        assert_eq!(of("EXT 2.1"), "`does_it`");
        assert!(cited("X0001 [seven] \"a\" b;", &mut found).is_err());
    }

    #[test]
    fn the_last_column_is_written_again() {
        let index = "# Rules\n\n| rule | what holds | tests |\n|---|---|---|\n| 1.1 | a |  |\n| ABI 5 | b | OLD0001 |\n";
        let citations = Citations::from([("1.1".into(), ["A0001".to_string(), "B0001".into()].into())]);
        let renewed = renew(index, &citations).unwrap();
        assert!(renewed.ends_with("| 1.1 | a | A0001, B0001 |\n| ABI 5 | b |  |\n"), "{renewed}");
        assert_eq!(renew(&renewed, &citations).unwrap(), renewed);
        let unknown = Citations::from([("1.2".into(), ["A0001".to_string()].into())]);
        assert!(renew(index, &unknown).unwrap_err().to_string().contains("no rule 1.2"));
    }

    #[test]
    fn clauses_are_cited_one_by_one() {
        let index =
            "| rule | what holds | tests |\n|---|---|---|\n| 1.1 | (a) One. (b) Two, (c) three. | old |\n";
        let citations = |list: &str| {
            let of_test = |rule| (rule, BTreeSet::from(["A0001".to_string()]));
            parse(list).unwrap().into_iter().map(of_test).collect::<Citations>()
        };
        let renewed = renew(index, &citations("1.1ac")).unwrap();
        assert!(renewed.ends_with("| (a) A0001; (b) none; (c) A0001 |\n"), "{renewed}");
        assert_eq!(rows(index).next().unwrap().citable(), ["1.1a", "1.1b", "1.1c"]);
        for wrong in ["1.1", "1.1d", "1.2a"] {
            assert!(renew(index, &citations(wrong)).is_err(), "{wrong}");
        }
        assert!(parse("ab").is_err());
    }

    #[test]
    fn a_test_that_is_named_and_is_none_is_found() {
        let citations = Citations::from([("1.1".into(), ["FST0001".to_string()].into())]);
        let unknown = |chapter: &'static str| unknown_tests(chapter, &citations).collect::<Vec<_>>();
        assert!(unknown("| typed items | FST0001 |, K10, MR7, XSAVE").is_empty());
        assert_eq!(unknown("FST0001, FST0002"), ["FST0002"]);
    }

    #[test]
    fn caveats_list_rules_by_reason() {
        let caveats = "## Other\n- **1.0**: no\n## Rules without a test\n\n- **1.1, ABI 5**: why.\n\n## Next\n- **2.2**: no";
        assert_eq!(listed(caveats), BTreeSet::from(["1.1", "ABI 5"]));
    }
}
