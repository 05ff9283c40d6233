//! Reads `systems.toml`, the table of systems that can be booted by name. The name of a test suite
//! is accepted as well.

use crate::qemu::{Accelerator, Boot, Machine};
use crate::suites::{self, Overrides};
use crate::window::Window;
use anyhow::{Context, Result, bail};
use clap::{Args, FromArgMatches};
use mac_build::tree;
use serde::Deserialize;

/// An entry of the table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct System {
    name: String,
    /// A sentence about the system.
    about: String,
    /// The kernel's command line.
    #[serde(default)]
    arguments: String,
    /// Programs in `target/boot`, each with its arguments after a space, in boot order.
    #[serde(default)]
    modules: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    system: Vec<System>,
}

/// Options that `run`, `debug` and `image` share: what boots, and on what.
#[derive(Args, Clone)]
pub struct Choice {
    /// The system in systems.toml, or the suite in tests/suites.toml, that boots
    pub system: Option<String>,
    /// Words for the kernel's command line, after those of the table
    #[arg(long, value_name = "WORDS", default_value = "", allow_hyphen_values = true)]
    pub arguments: String,
}

/// Options of an emulated machine.
#[derive(Args)]
pub struct Hardware {
    /// Processors
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=64))]
    cpus: u32,
    /// Memory, as QEMU writes it (128M, 2G)
    #[arg(long, value_name = "M", default_value = "512M")]
    memory: String,
    /// What executes the guest's instructions
    #[arg(long, value_enum, default_value = "tcg")]
    accel: Accelerator,
    /// QEMU's machine type
    #[arg(long, value_name = "TYPE", default_value = "q35")]
    machine: String,
    /// Show the machine's screen, with a keyboard
    #[arg(
        long,
        value_enum,
        value_name = "WINDOW",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "window"
    )]
    pub screen: Option<Window>,
    /// Put a unit between devices and memory (an IOMMU), by which a device reaches only the memory
    /// that its driver may use
    #[arg(long)]
    iommu: bool,
    /// Boot through UEFI and GRUB, from an image, instead of directly
    #[arg(long)]
    uefi: bool,
    /// A nanosecond for each instruction, and none to wait: hours of sleep pass in a moment
    #[arg(long)]
    virtual_time: bool,
}

impl Choice {
    /// The chosen system on this machine.
    pub fn machine(&self, hardware: &Hardware) -> Result<Machine> {
        let (arguments, modules) = self.contents()?;
        let words = [arguments, self.arguments.clone()];
        Ok(Machine { arguments: words.join(" ").trim().to_string(), modules, ..hardware.machine() })
    }

    /// The kernel's command line and the modules of the chosen system.
    fn contents(&self) -> Result<(String, Vec<String>)> {
        let name = self.system.as_deref().unwrap_or("default");
        let path = tree::root().join("systems.toml");
        let table: Table = toml::from_str(&tree::read(&path)?).with_context(|| path.display().to_string())?;
        if let Some(system) = table.system.iter().find(|system| system.name == name) {
            return Ok((system.arguments.clone(), system.modules.clone()));
        }
        let mut suites = suites::read(suites::TESTS)?;
        suites.extend(suites::read(suites::BENCHMARKS)?);
        if let Some(suite) = suites.iter().find(|suite| suite.name == name)
            && let Some(run) = suite.runs(&Overrides::default())?.into_iter().next()
        {
            return Ok((run.machine.arguments, run.machine.modules));
        }
        let systems = table.system.iter().map(|system| format!("  {:24} {}\n", system.name, system.about));
        let suites = suites.iter().map(|suite| format!("  {:24} {}\n", suite.name, suite.about));
        // The message ends with the reason, because the list before it may be long and scroll it
        // away.
        bail!(
            "the systems are\n{}and the suites\n{}no system or suite is called {name:?}; \
             a command of the guest's is run with: ./mac run -- {name}",
            systems.collect::<String>(),
            suites.collect::<String>()
        )
    }
}

impl Hardware {
    /// The machine that the options describe, without a system.
    pub fn machine(&self) -> Machine {
        Machine {
            model: self.machine.clone(),
            cpus: self.cpus,
            memory: self.memory.clone(),
            accelerator: self.accel,
            boot: if self.uefi { Boot::UefiCd } else { Boot::Direct },
            icount: self.virtual_time,
            screen: self.screen,
            iommu: self.iommu,
            ..Machine::default()
        }
    }

    /// The hardware that no option changes, for what does not depend on it.
    pub fn plain() -> Hardware {
        let none = Hardware::augment_args(clap::Command::new("plain")).get_matches_from([""]);
        Hardware::from_arg_matches(&none).expect("every option has a default value")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_no_system_may_be_a_command_of_the_guest() {
        let choice = Choice { system: Some("ls".into()), arguments: String::new() };
        let error = choice.machine(&Hardware::plain()).unwrap_err().to_string();
        assert!(error.lines().last().unwrap().contains("./mac run -- ls"), "{error}");
    }
}
