//! The tables of booted suites, `tests/suites.toml` and `bench/benchmarks.toml`, and the machines
//! that they ask for.
//!
//! A suite is a kernel command line and a list of modules; it is booted once for every combination
//! of its machine models, boot paths and processor counts. Its verdict comes from the TAP lines
//! that a program prints, from texts that must appear on the console, or from both.

use crate::devices::{self, Ends, ScratchDisk};
use crate::hub::Cable;
use crate::keys;
use crate::network;
use crate::qemu::{self, Accelerator, Boot, Machine};
use crate::tap;
use anyhow::{Context, Result, bail};
use mac_build::{build, tree};
use serde::Deserialize;
use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

/// An entry of a table of suites.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Suite {
    /// The unique name of the suite; the filter of `./mac test` and reports use it.
    pub name: String,
    /// What the suite shows, in a sentence.
    pub about: String,
    /// The kernel's command line.
    #[serde(default)]
    arguments: String,
    /// Programs in `target/boot`, each with its arguments after a space, in boot order.
    #[serde(default)]
    modules: Vec<String>,
    #[serde(default = "default_machines")]
    machines: Vec<String>,
    #[serde(default = "default_boots")]
    boots: Vec<Boot>,
    #[serde(default = "default_cpus")]
    cpus: Vec<u32>,
    #[serde(default = "default_memory")]
    memory: String,
    /// Further QEMU arguments.
    #[serde(default)]
    qemu: Vec<String>,
    /// Whether the machine has a unit between devices and memory (an IOMMU).
    #[serde(default)]
    iommu: bool,
    /// Whether the machine stays as it is after a panic, instead of ending.
    #[serde(default)]
    stays: bool,
    /// An empty disk of the machine, with its driver.
    disk: Option<ScratchDisk>,
    /// Whether the machine's real-time clock has its driver.
    #[serde(default)]
    clock: bool,
    /// Whether the machine has a network of its own in the emulator, with its driver.
    #[serde(default)]
    network: bool,
    /// Whether the internet protocols are in a task of their own, and not in the Unix server.
    #[serde(default)]
    network_server: bool,
    /// For an `interactive` suite with a network: TCP ports of the machine to which programs of the
    /// host connect.
    #[serde(default)]
    pub publish: Vec<u16>,
    /// For an `interactive` suite without a network of its own: what the shell of a second machine
    /// runs, which has the same image and a cable to the first.
    pub peer: Option<String>,
    /// For a suite with a `peer`: what the cable does to frames.
    #[serde(default)]
    pub cable: Cable,
    /// For an `interactive` suite with a network: Debian's packages that the host serves to the
    /// machine, with all that they depend on.
    #[serde(default)]
    pub repository: Vec<String>,
    /// After how many steps of its work each driver ends, as often as root starts it again.
    ends_after: Option<u64>,
    /// How often each of them ends and is started again, if not as often as `restart yes` has it.
    ends_times: Option<u32>,
    /// The server that ends so, if it is only one.
    ends: Option<String>,
    /// Whether instructions are counted instead of time. Not for suites about races, since
    /// processors take turns then.
    #[serde(default)]
    icount: bool,
    /// For a benchmark: the functions of its program whose sizes are measured, too.
    #[serde(default)]
    pub code: Vec<String>,
    /// For a benchmark: whether it measures for how long the kernel does not look for interrupts,
    /// instead of costs.
    #[serde(default)]
    pub latency: bool,
    /// For a benchmark: whether it adds up the work of all processors, without polling, and the
    /// interrupts that they take.
    #[serde(default)]
    pub work: bool,
    /// For a benchmark: the feature with which a kernel is built for it, instead of the usual
    /// kernel.
    pub kernel: Option<String>,
    /// For a benchmark with guests: whether the work of each processor is counted.
    #[serde(default)]
    pub speedup: bool,
    /// How many times each machine is booted; more than once for suites about races.
    #[serde(default = "number::<1>")]
    repeat: u64,
    /// Seconds without any console output after which the machine counts as hung.
    #[serde(default = "number::<60>")]
    quiet: u64,
    /// Seconds after which the machine is stopped even if it is still printing.
    #[serde(default = "number::<600>")]
    limit: u64,
    /// The number of tests that the suite has at least; a run that announces fewer has failed.
    /// `None`: the suite prints no TAP and is judged by `expect` alone.
    pub tests: Option<usize>,
    /// Texts that must appear on the console, in this order.
    #[serde(default)]
    pub expect: Vec<Expectation>,
    /// Texts that must not appear on the console.
    #[serde(default)]
    pub never: Vec<String>,
    /// The image of guest programs with which the suite boots. The suite then consists of the tests
    /// in `guest`, `interactive` or `piped`, unless the image is a `stick`.
    pub image: Option<String>,
    /// Whether the image boots by itself, as the file that `./mac image` writes: from the CD, stick
    /// or disk of `boots`, with its shells on the screen and on the first serial port. Such a suite
    /// is judged by `expect`.
    #[serde(default)]
    pub stick: bool,
    /// Whether a directory with the files of `tests/guests/share` is shared with the guest.
    #[serde(default)]
    pub share: bool,
    /// How many mebibytes of files that are zeros the image has in addition to its programs.
    #[serde(default)]
    pub filling: u64,
    /// Packages that the image has in addition, as `./mac run --packages` names them.
    #[serde(default)]
    pub packages: Vec<String>,
    /// Programs of `tests/guests` that the image has in `/usr/local/bin`: scripts with their
    /// interpreters' names in them.
    #[serde(default, rename = "programs")]
    pub programs_of_image: Vec<String>,
    /// Scripts of `tests/guests/scripts`, each a test that is compared with what it prints under
    /// Debian's own kernel.
    #[serde(default)]
    pub guest: Vec<String>,
    /// Scripts of `tests/interactive`, which run one after the other. Each is a test: an
    /// interactive session at the shell.
    #[serde(default)]
    pub interactive: Vec<String>,
    /// Tests of `tests/piped.toml`, each a boot: a command whose input and output are piped.
    #[serde(default)]
    pub piped: Vec<String>,
    /// The modes of the Unix server in which guests run.
    #[serde(default = "default_modes")]
    modes: Vec<Mode>,
    /// For a suite with guests: the processor counts with which it runs in bounce mode, if not all
    /// of `cpus`.
    bounce_cpus: Option<Vec<u32>>,
    /// Why the suite is recorded but not run yet. The reason is printed, and the suite counts as
    /// skipped.
    pub pending: Option<String>,
    /// Whether it is a complete campaign, which only `./mac test --all` runs.
    #[serde(default)]
    pub campaign: bool,
    /// Accelerators that cannot run the suite, each with the reason.
    #[serde(default)]
    not_under: BTreeMap<Accelerator, String>,
}

/// A text that must appear on the console. If it has an id it is a test.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Expectation {
    /// The stable id of the test.
    pub id: String,
    /// The sentence of the test.
    pub sentence: String,
    /// A part of one console line.
    pub text: String,
    /// What is typed into the console after the text has appeared.
    pub send: Option<String>,
    /// The command that QEMU's monitor gets after the text has appeared.
    pub monitor: Option<String>,
    /// What is typed at the machine's keyboard after the text has appeared.
    pub keys: Option<String>,
    /// Texts that must be on the machine's screen after the text has appeared, each in a row of its
    /// own, in this order.
    #[serde(default)]
    pub screen: Vec<String>,
}

fn default_machines() -> Vec<String> {
    vec!["q35".into()]
}

fn default_boots() -> Vec<Boot> {
    vec![Boot::Direct]
}

fn default_modes() -> Vec<Mode> {
    vec![Mode::Exception, Mode::Bounce]
}

fn default_cpus() -> Vec<u32> {
    vec![1]
}

fn default_memory() -> String {
    "256M".into()
}

fn number<const NUMBER: u64>() -> u64 {
    NUMBER
}

/// How system calls of guests are delivered to the Unix server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// As messages of the kernel to the server
    Exception,
    /// To an emulation library in the program's own space
    Bounce,
}

impl Mode {
    /// The name of the mode on the command line and in the tables.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Exception => "exception",
            Mode::Bounce => "bounce",
        }
    }
}

/// The settings of the command line that override those of every suite.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Overrides {
    /// Boot every suite with this many processors instead of its own choices
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub cpus: Option<u32>,
    /// Memory of every machine, as QEMU writes it (128M, 2G)
    #[arg(long, value_name = "M")]
    pub memory: Option<String>,
    /// What executes the guest's instructions
    #[arg(long, value_enum, default_value = "tcg")]
    pub accel: Accelerator,
    /// Boot every suite through UEFI
    #[arg(long)]
    pub uefi: bool,
}

/// A boot of a suite on one machine.
#[derive(Clone, Debug)]
pub struct Run {
    /// The suite that is booted.
    pub suite: Suite,
    /// The name of the suite, with what distinguishes this run: `ipc[pc,2 cpus]`.
    pub name: String,
    /// The machine on which the suite is booted.
    pub machine: Machine,
    /// How system calls of guests are delivered.
    pub mode: Mode,
    /// How long the console may be silent before the machine counts as hung.
    pub quiet: Duration,
    /// How long the whole run may take.
    pub limit: Duration,
}

/// A suite that is not run, and the reason.
#[derive(Clone, Debug)]
pub struct Excluded {
    /// The suite's name.
    pub name: String,
    /// Why this machine cannot run it.
    pub reason: String,
}

impl std::fmt::Display for Excluded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} is not run: {}", self.name, self.reason)
    }
}

impl std::error::Error for Excluded {}

/// The choices that distinguish the runs of a suite.
struct Variant<'a> {
    model: &'a str,
    boot: Boot,
    cpus: u32,
    mode: Mode,
    round: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    #[serde(default)]
    suite: Vec<Suite>,
}

/// The path of the table of booted tests.
pub const TESTS: &str = "tests/suites.toml";
/// The path of the table of tests that are unmodified Linux programs.
pub const GUESTS: &str = "tests/guests/suites.toml";
/// The path of the table of benchmarks.
pub const BENCHMARKS: &str = "bench/benchmarks.toml";

/// Reads a table of suites.
pub fn read(table: &str) -> Result<Vec<Suite>> {
    let path = tree::root().join(table);
    parse(&tree::read(&path)?).with_context(|| path.display().to_string())
}

/// Builds the files that these suites boot: all, unless all suites run guests.
pub fn build(suites: &[Suite]) -> Result<()> {
    match suites.iter().all(|suite| suite.image.is_some()) && !suites.is_empty() {
        true => build::guest_system(),
        false => build::everything(&build::Options::default()).map(drop),
    }
}

fn parse(text: &str) -> Result<Vec<Suite>> {
    let table: Table = toml::from_str(text)?;
    let mut names = HashSet::new();
    for suite in &table.suite {
        suite.check().with_context(|| format!("suite {:?}", suite.name))?;
        if !names.insert(&suite.name) {
            bail!("two suites are called {:?}", suite.name);
        }
    }
    Ok(table.suite)
}

impl Suite {
    /// The disk with the root file system, if the suite boots from one.
    pub fn root_disk(&self) -> Option<&ScratchDisk> {
        self.disk.as_ref().filter(|disk| disk.root)
    }

    /// Refuses a suite that could not fail, or that could never run.
    fn check(&self) -> Result<()> {
        let boots_itself = self.stick && self.boots.iter().all(|boot| boot.from_disk());
        if self.root_disk().is_some() && self.interactive.is_empty() && !boots_itself {
            bail!("only `interactive` suites, and a `stick` whose `boots` say so, boot from a disk");
        }
        if self.boots.iter().any(|boot| boot.from_disk()) && !(boots_itself && self.root_disk().is_some()) {
            bail!("what boots from a disk is a `stick` with a `disk` that is the root");
        }
        let kinds = [&self.guest, &self.interactive, &self.piped];
        let kinds = kinds.iter().filter(|tests| !tests.is_empty()).count();
        let has_scripts = kinds > 0;
        if self.image.is_some() != (has_scripts || self.stick) || kinds > 1 || has_scripts && self.stick {
            bail!("`image` belongs to one of `guest`, `interactive`, `piped` and `stick`");
        }
        if self.stick && self.boots.iter().any(|boot| boot.imageless()) {
            bail!("a `stick` boots from an image: `boots` says how");
        }
        if let Some(bad) = self.expect.iter().filter_map(|it| it.keys.as_deref()).find_map(keys::refused) {
            bail!("`keys` has no key for {bad:?}");
        }
        if !self.packages.is_empty() && self.image.is_none() {
            bail!("`packages` are added to an `image`");
        }
        if !self.programs_of_image.is_empty() && self.image.is_none() {
            bail!("`programs` are added to an `image`");
        }
        if self.ends.is_some() && self.ends_after.is_none() {
            bail!("`ends` names a server that ends, and `ends-after` says when");
        }
        if self.ends_times.is_some_and(|times| times == 0 || self.ends_after.is_none()) {
            bail!("`ends-times` says how often servers end, and `ends-after` says when");
        }
        if self.cable != Cable::default() && self.peer.is_none() {
            bail!("`cable` is what connects the machine with its `peer`");
        }
        self.cable.check()?;
        let opens_network = !self.publish.is_empty() || !self.repository.is_empty();
        if opens_network && !self.has_open_network() {
            bail!("`publish` and `repository` belong to an `interactive` suite with a `network`");
        }
        if self.peer.is_some() && (self.network || self.interactive.is_empty()) {
            bail!("`peer` belongs to an `interactive` suite, and is its network");
        }
        if self.network_server && self.image.is_none() {
            bail!("`network-server` belongs to a suite with an `image`");
        }
        if has_scripts && (self.tests.is_some() || !self.expect.is_empty()) {
            bail!("the tests of a suite with guests are its scripts");
        }
        if self.tests.is_none() && self.expect.is_empty() && !has_scripts {
            bail!("neither `tests` nor `expect`: it could not fail");
        }
        if self.tests == Some(0) {
            bail!("`tests = 0`: it could not fail");
        }
        if self.iommu && self.machines.iter().any(|model| model != "q35") {
            bail!("only machines of type q35 have an `iommu`");
        }
        if self.machines.is_empty()
            || self.boots.is_empty()
            || self.cpus.is_empty()
            || self.modes.is_empty()
            || self.repeat == 0
        {
            bail!("an empty list of machines, boots, cpus or modes: it would never run");
        }
        if let Some(cpus) = &self.bounce_cpus
            && (self.image.is_none() || !self.modes.contains(&Mode::Bounce) || cpus.is_empty())
        {
            bail!("`bounce-cpus` belongs to a suite with guests that runs in bounce mode");
        }
        if let Some(bad) = self.expect.iter().find(|expectation| !tap::is_id(&expectation.id)) {
            bail!("{:?} is not a test id like BOOT0001", bad.id);
        }
        Ok(())
    }

    /// Whether the filter of the command line selects this suite.
    pub fn matches(&self, filter: &str) -> bool {
        self.name.contains(filter)
            || self.expect.iter().any(|expectation| expectation.id.contains(filter))
            || self.guest.iter().chain(&self.interactive).chain(&self.piped).any(|test| test.contains(filter))
            || self.modules.iter().any(|module| module.contains(filter))
    }

    /// Whether the machine has a disk.
    pub fn has_disk(&self) -> bool {
        self.disk.is_some()
    }

    /// Whether the machine has a network of its own in the emulator.
    pub fn has_network(&self) -> bool {
        self.network
    }

    /// Whether the host serves files to the machine, and can connect to it.
    pub fn has_open_network(&self) -> bool {
        self.network && !self.interactive.is_empty()
    }

    /// The modules of the suite, with their arguments.
    pub fn modules(&self) -> impl Iterator<Item = &str> {
        self.modules.iter().map(String::as_str)
    }

    /// The names of the suite's modules.
    pub fn programs(&self) -> impl Iterator<Item = &str> {
        self.modules.iter().map(|module| qemu::module_name(module))
    }

    /// The runs of the suite, one for each machine; or why it cannot be run.
    pub fn runs(&self, overrides: &Overrides) -> Result<Vec<Run>, Excluded> {
        let accelerator = overrides.accel;
        let excluded = |reason: String| Err(Excluded { name: self.name.clone(), reason });
        if let Some(reason) = self.not_under.get(&accelerator) {
            return excluded(reason.clone());
        }
        if self.icount && accelerator == Accelerator::Kvm {
            return excluded("counts instructions, which KVM cannot".into());
        }
        let from_disk = self.boots.iter().any(|boot| boot.from_disk());
        let boots = match overrides.uefi {
            true => vec![if from_disk { Boot::UefiDisk } else { Boot::UefiCd }],
            false => self.boots.clone(),
        };
        let mut runs = Vec::new();
        // Only suites with guests run in several modes.
        let modes = if self.image.is_none() { &self.modes[..1] } else { &self.modes };
        for model in &self.machines {
            for &boot in &boots {
                for &mode in modes {
                    let cpus = overrides.cpus.map_or_else(|| self.cpus_in(mode).to_vec(), |cpus| vec![cpus]);
                    for cpus in cpus {
                        for round in 1..=self.repeat {
                            let variant = Variant { model, boot, cpus, mode, round };
                            runs.push(self.run(&variant, overrides));
                        }
                    }
                }
            }
        }
        Ok(runs)
    }

    /// The processor counts with which the suite runs in a mode.
    fn cpus_in(&self, mode: Mode) -> &[u32] {
        self.bounce_cpus.as_ref().filter(|_| mode == Mode::Bounce).unwrap_or(&self.cpus)
    }

    fn run(&self, variant: &Variant<'_>, overrides: &Overrides) -> Run {
        let &Variant { model, boot, cpus, mode, round } = variant;
        let own_disk = self.disk.clone().filter(|disk| !disk.root);
        let mut marks = Vec::new();
        if self.machines.len() > 1 {
            marks.push(model.to_string());
        }
        if self.boots.len() > 1 || overrides.uefi {
            marks.push(qemu::name_of(&boot));
        }
        if self.cpus.len() > 1 || cpus != 1 {
            marks.push(if cpus == 1 { "1 cpu".into() } else { format!("{cpus} cpus") });
        }
        if self.image.is_some() && self.modes.len() > 1 {
            marks.push(mode.name().to_string());
        }
        if self.repeat > 1 {
            marks.push(format!("round {round}"));
        }
        let marks = if marks.is_empty() { String::new() } else { format!("[{}]", marks.join(", ")) };
        let mut machine = Machine {
            model: model.into(),
            cpus,
            memory: overrides.memory.clone().unwrap_or_else(|| self.memory.clone()),
            accelerator: overrides.accel,
            boot,
            // With `exit`, a panic ends the machine immediately, so that the silence after it
            // need not be waited for.
            arguments: format!("{}{}", self.arguments, if self.stays { "" } else { " exit" })
                .trim_start()
                .to_string(),
            modules: self.modules.clone(),
            icount: self.icount,
            iommu: self.iommu,
            devices: own_disk
                .iter()
                .flat_map(ScratchDisk::devices)
                .chain(self.clock.then_some(devices::CLOCK))
                .chain(self.network.then_some(network::NET))
                .collect(),
            ends: self.ends_after.map(|after| Ends {
                after,
                times: self.ends_times,
                server: self.ends.clone(),
            }),
            disk: own_disk,
            extra: self.qemu.iter().cloned().chain(network::of_tests(self.network)).collect(),
            ..Machine::default()
        };
        if self.network_server {
            machine.add_network_server();
        }
        Run {
            suite: self.clone(),
            name: format!("{}{marks}", self.name),
            machine,
            mode,
            quiet: Duration::from_secs(self.quiet),
            limit: Duration::from_secs(self.limit),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUITE: &str = "[[suite]]\nname = \"a\"\nabout = \"It boots.\"\n";

    fn suites(more: &str) -> Result<Vec<Suite>> {
        parse(&format!("{SUITE}{more}\n"))
    }

    #[test]
    fn the_tables_of_the_tree_are_valid() {
        read(TESTS).unwrap();
        assert!(read(GUESTS).unwrap().iter().all(|suite| suite.image.is_some()));
        assert!(read(BENCHMARKS).unwrap().iter().all(|benchmark| benchmark.icount != benchmark.speedup));
    }

    #[test]
    fn a_suite_that_cannot_fail_or_cannot_run_is_refused() {
        for bad in [
            "",
            "tests = 0",
            "tests = 1\nmachines = []",
            "tests = 1\nrepeat = 0",
            "tests = 1\nmachines = [\"pc\"]\niommu = true",
            "tests = 1\nnot-under = { xen = \"?\" }",
            "image = \"base\"",
            "guest = [\"x\"]",
            "tests = 1\npackages = [\"vim\"]",
            "tests = 1\nprograms = [\"x.py\"]",
            "image = \"base\"\nguest = [\"x\"]\ntests = 1",
            "image = \"base\"\nguest = [\"x\"]\nmodes = []",
            "image = \"base\"\nguest = [\"x\"]\nbounce-cpus = []",
            "image = \"base\"\nguest = [\"x\"]\nmodes = [\"exception\"]\nbounce-cpus = [1]",
            "tests = 1\nbounce-cpus = [1]",
            "tests = 1\nends = \"net\"",
            "tests = 1\nends-times = 3",
            "tests = 1\nends-after = 7\nends-times = 0",
            "tests = 1\nnetwork = true\npublish = [80]",
            "tests = 1\nnetwork-server = true",
            "tests = 1\npeer = \"true\"",
            "tests = 1\ncable = { loses = 10 }",
            "image = \"base\"\ninteractive = [\"x\"]\npeer = \"true\"\ncable = { loses = 51 }",
            "image = \"base\"\ninteractive = [\"x\"]\npeer = \"true\"\ncable = { tears = 1 }",
            "image = \"base\"\ninteractive = [\"x\"]\npeer = \"true\"\ncable = { seed = 7 }",
            "image = \"base\"\ninteractive = [\"x\"]\nrepository = [\"jq\"]",
            "tests = 1\nmemroy = \"1G\"",
            "expect = [{ id = \"boots\", sentence = \"s\", text = \"t\" }]",
        ] {
            assert!(suites(bad).is_err(), "{bad}");
        }
        assert!(parse(&format!("{SUITE}tests = 1\n{SUITE}tests = 1\n")).is_err(), "two of one name");
    }

    #[test]
    fn a_suite_is_booted_in_every_combination() {
        let suites = suites("tests = 1\nmachines = [\"pc\", \"q35\"]\ncpus = [1, 2, 4]\nrepeat = 2").unwrap();
        let runs = suites[0].runs(&Overrides::default()).unwrap();
        assert_eq!(runs.len(), 12);
        assert_eq!(runs[0].name, "a[pc, 1 cpu, round 1]");
        assert_eq!(runs.iter().map(|run| &run.name).collect::<HashSet<_>>().len(), 12);
    }

    #[test]
    fn a_suite_may_have_the_internet_protocols_in_a_task_of_their_own() {
        let servers = |more: &str| {
            let suite =
                &suites(&format!("image = \"base\"\nguest = [\"x\"]\nnetwork = true\n{more}")).unwrap()[0];
            let run = suite.runs(&Overrides::default()).unwrap().remove(0);
            run.machine.devices.iter().map(|device| device.program).collect::<Vec<_>>()
        };
        assert_eq!(servers(""), ["virtio-net"]);
        assert_eq!(servers("network-server = true"), ["virtio-net", "network"]);
    }

    #[test]
    fn a_suite_with_guests_may_run_in_bounce_mode_with_fewer_processors() {
        let names = |more: &str| {
            let suite =
                &suites(&format!("image = \"base\"\nguest = [\"x\"]\ncpus = [1, 4]\n{more}")).unwrap()[0];
            let runs = suite.runs(&Overrides::default()).unwrap();
            runs.into_iter().map(|run| run.name).collect::<Vec<_>>()
        };
        let all = ["a[1 cpu, exception]", "a[4 cpus, exception]", "a[1 cpu, bounce]", "a[4 cpus, bounce]"];
        assert_eq!(names(""), all);
        assert_eq!(names("bounce-cpus = [1]"), all[..3]);
    }

    #[test]
    fn the_command_line_overrides_the_table() {
        let suites = suites("tests = 1\ncpus = [1, 2, 4]").unwrap();
        let overrides =
            Overrides { cpus: Some(3), memory: Some("1G".into()), uefi: true, ..Overrides::default() };
        let runs = suites[0].runs(&overrides).unwrap();
        assert_eq!(runs.len(), 1);
        assert_eq!((runs[0].machine.cpus, runs[0].machine.memory.as_str()), (3, "1G"));
        assert_eq!(runs[0].machine.boot, Boot::UefiCd);
    }

    #[test]
    fn what_an_accelerator_cannot_run_is_named_with_the_reason() {
        let suites = suites("tests = 1\nnot-under = { tcg = \"TCG has no PCID\" }").unwrap();
        assert_eq!(suites[0].runs(&Overrides::default()).unwrap_err().reason, "TCG has no PCID");
        let kvm = Overrides { accel: Accelerator::Kvm, ..Overrides::default() };
        assert_eq!(suites[0].runs(&kvm).unwrap().len(), 1);
    }
}
