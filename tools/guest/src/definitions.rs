//! The table of guest images, `guests/images.toml`.

use anyhow::{Context, Result, bail};
use mac_build::tree;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Where the table, the lock and the files of our own are.
pub(crate) fn directory() -> PathBuf {
    tree::root().join("guests")
}

/// Packages that belong together.
#[derive(Clone, Debug, Deserialize, Hash)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Definition {
    /// Unique among images and host sets.
    pub(super) name: String,
    /// What it is for, in a sentence.
    pub(super) about: String,
    /// The image that this one extends.
    pub(super) from: Option<String>,
    /// Packages that are asked for, by name or by one of apt's patterns.
    #[serde(default)]
    pub(super) packages: Vec<String>,
    /// Which packages are taken of those asked for and all that they depend on.
    #[serde(default)]
    pub(super) dependencies: Dependencies,
    /// Paths whose contents are left out; `*` stands for one component or a part of it.
    #[serde(default)]
    pub(super) leave_out: Vec<String>,
    /// What is kept all the same.
    #[serde(default)]
    pub(super) keep: Vec<String>,
    /// Users beyond those of the packages.
    #[serde(default)]
    pub(super) users: Vec<String>,
    /// Symbolic links beyond those of the packages: path and target.
    #[serde(default)]
    pub(super) links: BTreeMap<String, String>,
    /// A file of ours that lists names in /usr/bin, and the target that each is a link to.
    pub(super) link_list: Option<(String, String)>,
    /// Directories beyond those of the packages, each with its mode in octal.
    #[serde(default)]
    pub(super) directories: BTreeMap<String, String>,
    /// Directories of ours whose files are laid over the packages', one after the other.
    #[serde(default)]
    pub(super) files: Vec<String>,
}

/// Which packages are taken.
#[derive(Clone, Debug, Default, Deserialize, Hash, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Dependencies {
    /// The packages that are asked for and all that they depend on, without recommendations.
    #[default]
    All,
    /// Only the packages that are asked for, unpacked and not installed.
    None,
    /// Only packages whose names start with one of the names that are asked for.
    Only(String),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    image: Vec<Definition>,
    /// Packages that are not for guests: what tests need on the host, taken from the packages
    /// without installing them.
    host: Vec<Definition>,
}

/// The whole table.
#[derive(Debug)]
pub(super) struct Definitions {
    images: Vec<Definition>,
    host: Vec<Definition>,
}

impl Definitions {
    pub(super) fn read() -> Result<Definitions> {
        let path = directory().join("images.toml");
        Definitions::parse(&mac_build::tree::read(&path)?).with_context(|| path.display().to_string())
    }

    fn parse(text: &str) -> Result<Definitions> {
        let table: Table = toml::from_str(text)?;
        let mut definitions = Definitions { images: Vec::new(), host: table.host };
        for image in table.image {
            if definitions.all().any(|other| other.name == image.name) {
                bail!("two entries are called {:?}", image.name);
            }
            let below = image.from.as_deref().map(|name| definitions.image(name)).transpose();
            let complete = match below.context("`from` names an earlier image")? {
                Some(below) => image.extend(below),
                None => image,
            };
            definitions.images.push(complete);
        }
        Ok(definitions)
    }

    /// Every image and host set.
    pub(super) fn all(&self) -> impl Iterator<Item = &Definition> {
        self.images.iter().chain(&self.host)
    }

    /// The image of that name.
    pub(super) fn image(&self, name: &str) -> Result<&Definition> {
        self.images.iter().find(|image| image.name == name).with_context(|| {
            let lines = self.images.iter().map(|image| format!("\n  {:10} {}", image.name, image.about));
            format!("there is no image {name:?}; images:{}", lines.collect::<String>())
        })
    }
}

impl Definition {
    /// Whether packages are taken by the start of their names, so that those asked for may be
    /// missing.
    #[cfg(test)]
    pub(super) fn takes_only_some(&self) -> bool {
        matches!(self.dependencies, Dependencies::Only(_))
    }

    /// This image with everything that the one below it has.
    fn extend(mut self, below: &Definition) -> Definition {
        let joined = |own: &mut Vec<String>, theirs: &[String]| {
            let before = std::mem::take(own);
            own.extend(theirs.iter().cloned());
            own.extend(before.into_iter().filter(|item| !theirs.contains(item)));
        };
        joined(&mut self.packages, &below.packages);
        joined(&mut self.leave_out, &below.leave_out);
        joined(&mut self.keep, &below.keep);
        joined(&mut self.users, &below.users);
        joined(&mut self.files, &below.files);
        for (path, target) in &below.links {
            self.links.entry(path.clone()).or_insert_with(|| target.clone());
        }
        for (path, mode) in &below.directories {
            self.directories.entry(path.clone()).or_insert_with(|| mode.clone());
        }
        self.link_list = self.link_list.or_else(|| below.link_list.clone());
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_the_tree_is_valid() {
        assert!(Definitions::read().unwrap().images.len() >= 3);
    }

    #[test]
    fn an_image_has_what_the_one_below_has() {
        let text = "[[image]]\nname='a'\nabout=''\npackages=['x']\nleave-out=['/d']\nfiles=['f']\nlinks={'/l'='1'}\n\
                    [[image]]\nname='b'\nabout=''\nfrom='a'\npackages=['y','x']\nfiles=['g']\nlinks={'/l'='2'}\n\
                    [[host]]\nname='h'\nabout=''\ndependencies={only='p'}\n";
        let definitions = Definitions::parse(text).unwrap();
        let image = definitions.image("b").unwrap();
        assert_eq!(image.packages, ["x", "y"]);
        assert_eq!(image.leave_out, ["/d"]);
        assert_eq!(image.links["/l"], "2");
        assert_eq!(image.files, ["f", "g"]);
        assert_eq!(definitions.all().count(), 3);
    }

    #[test]
    fn mistakes_are_named() {
        let error = Definitions::parse("host=[]\n[[image]]\nname='b'\nabout=''\nfrom='a'\n").unwrap_err();
        assert!(format!("{error:#}").contains("no image \"a\""), "{error:#}");
        assert!(Definitions::parse("host=[]\nimage=[]\nimmage=[]").is_err());
    }
}
