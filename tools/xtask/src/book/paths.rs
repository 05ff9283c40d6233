//! Checks that the files, directories and suites which prose names in code exist.

use super::{Code, prose};
use anyhow::{Result, bail};
use mac_build::tree::{self, read};
use mac_machine::suites;
use std::collections::BTreeSet;
use std::fs;

/// Checks that each path in the book's prose is that of a file or a directory of the tree, or the
/// name of a suite.
pub(crate) fn check() -> Result<()> {
    let mut names = BTreeSet::new();
    for table in [suites::TESTS, suites::GUESTS, suites::BENCHMARKS] {
        names.extend(suites::read(table)?.into_iter().map(|suite| suite.name));
    }
    let mut tops: BTreeSet<String> =
        names.iter().filter_map(|name| Some(name.split_once('/')?.0.to_string())).collect();
    for entry in fs::read_dir(tree::root())? {
        tops.insert(entry?.file_name().to_string_lossy().into_owned());
    }
    // Files in `target` may be missing.
    tops.remove("target");
    let mut wrong = Vec::new();
    for file in prose()? {
        for path in named(&read(&file)?, &tops) {
            if !names.contains(&path) && !tree::root().join(&path).exists() {
                wrong.push(format!("{}: there is no {path}", tree::name(&file)));
            }
        }
    }
    if wrong.is_empty() { Ok(()) } else { bail!("{}", wrong.join("\n")) }
}

/// The paths between back quotes that begin with one of these names. `{a,b}` stands for both; paths
/// with words in capitals or `*` are patterns and are not checked.
fn named(text: &str, tops: &BTreeSet<String>) -> Vec<String> {
    let is_named = |code: &String| {
        let begins = tops.iter().any(|top| code.strip_prefix(top).is_some_and(|it| it.starts_with('/')));
        let stands_for_others = code.contains(['*', ' '])
            || code.split(['/', '.']).any(|part| part.len() > 1 && part.chars().all(char::is_uppercase));
        begins && !stands_for_others
    };
    Code::of(text).spans.iter().filter(|code| is_named(code)).flat_map(|code| alternatives(code)).collect()
}

/// Expands braces: a path for each word within them.
fn alternatives(path: &str) -> Vec<String> {
    match path.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?))) {
        Some((before, (words, after))) => {
            words.split(',').map(|word| format!("{before}{word}{after}")).collect()
        }
        None => vec![path.into()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_found_in_code_within_prose() {
        let text = "`lib/a.rs` and lib/b.rs, `lib/{c,d}/e.rs`, `docs/NAME.json`, `lib/f*.rs`, `library/g`\n\
                    ```\n`lib/h.rs`\n```\n`lib/`";
        let tops = ["lib", "docs"].map(String::from).into();
        assert_eq!(named(text, &tops), ["lib/a.rs", "lib/c/e.rs", "lib/d/e.rs", "lib/"]);
    }

    #[test]
    fn the_book_names_files_that_exist() {
        check().unwrap();
    }

    /// The picture of that name, which is drawn by hand and shows directories of the tree.
    fn drawn(name: &str) -> String {
        read(&tree::root().join("docs/src/pictures").join(name)).unwrap()
    }

    #[test]
    fn the_map_of_the_code_shows_every_library_personality_server_and_tool() {
        let map = drawn("code.svg");
        for top in ["lib", "personality", "servers", "tools"] {
            for entry in fs::read_dir(tree::root().join(top)).unwrap() {
                let name = entry.unwrap().file_name().into_string().unwrap();
                let name = if top == "tools" { name } else { format!("{top}/{name}") };
                assert!(map.contains(&name), "code.svg does not show {name}");
            }
        }
        for picture in [map, drawn("architecture.svg")] {
            for word in picture.split(['<', '>', ' ', ',', ':', '"', '(', ')']) {
                let is_path = ["lib/", "personality/", "servers/"].iter().any(|top| word.starts_with(top));
                assert!(!is_path || tree::root().join(word).is_dir(), "there is no {word}");
            }
        }
    }

    /// The value of an attribute of an element.
    fn attribute(element: &str, name: &str) -> Option<f64> {
        element.split_once(&format!(" {name}=\""))?.1.split('"').next()?.parse().ok()
    }

    #[test]
    fn no_text_of_a_drawn_picture_is_wider_than_its_box() {
        let mut seen = 0;
        for picture in ["code.svg", "architecture.svg"].map(drawn) {
            let all = |kind| picture.split('<').filter(move |element| element.starts_with(kind));
            let boxes: Vec<[f64; 4]> = all("rect ")
                .map(|it| ["x", "y", "width", "height"].map(|name| attribute(it, name).unwrap_or(0.0)))
                .collect();
            for element in all("text ").filter(|it| it.contains("text-anchor=\"middle\"")) {
                let [x, y] = ["x", "y"].map(|name| attribute(element, name).unwrap());
                let text = element.split('>').nth(1).unwrap();
                // The average width of letters of DejaVu Sans; bold ones are a tenth wider.
                let size = attribute(element, "font-size").unwrap_or(13.0);
                let bold = if element.contains("bold") { 1.1 } else { 1.0 };
                let width = text.chars().count() as f64 * size * 0.55 * bold;
                let around = boxes.iter().filter(|[left, top, width, height]| {
                    (*left..left + width).contains(&x) && (*top..top + height).contains(&y)
                });
                let narrowest = around.map(|[_, _, width, _]| *width).fold(f64::INFINITY, f64::min);
                assert!(width < narrowest, "{text:?} needs {width:.0} of {narrowest:.0}");
                seen += 1;
            }
        }
        assert!(seen > 40);
    }
}
