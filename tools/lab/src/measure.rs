//! `./mac measure`: compares the cost of an interactive session at the shell on Macadamia and under
//! Debian's kernel.

use crate::bench::{self, Measurement};
use anyhow::{Context, Result};
use mac_build::{build, guests, tree};
use mac_guest::{Kernel, Request, Start, linux, make};
use mac_machine::suites::Mode;
use mac_machine::systems::Hardware;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Options of `./mac measure`.
#[derive(clap::Args)]
pub struct Options {
    /// Put the results into docs/results and the table of the book
    #[arg(long)]
    publish: bool,
}

/// The size of the machine's memory in KiB.
const MEMORY: u64 = 512 << 10;
/// How many boots are made when seconds of the host are measured. The fastest counts.
const BOOTS: usize = 3;
/// The command that the shell runs before its first prompt.
const AT_THE_PROMPT: &str = "PROMPT_COMMAND='/bench/stopwatch now \"power-on to the prompt\"; \
     sed -n \"s/^MemFree: */free at the prompt\\t/p\" /proc/meminfo >&2; exit 0'\n";
/// The name of the results.
const RESULTS: &str = "shell";

/// Boots both systems and prints the table. Publishes it if the options say so.
pub fn run(options: &Options) -> Result<()> {
    if options.publish {
        build::only_release()?;
    }
    build::guest_system()?;
    let image = image()?;
    let mut measurements = Vec::new();
    for kernel in [Kernel::Macadamia, Kernel::Linux] {
        for (index, (name, value)) in measure(kernel, &image)?.into_iter().enumerate() {
            let test = format!("{index:02} {name}");
            measurements.push(Measurement::single(test, bench::column(kernel), value));
        }
    }
    print!("{}", bench::session(RESULTS, &measurements, options.publish)?);
    Ok(())
}

/// Measurements: a name with its unit, and the value.
type Figures = Vec<(String, f64)>;

/// The image for both systems, with the programs that measure.
fn image() -> Result<PathBuf> {
    let mut request = Request { name: "shell".into(), ..Request::default() };
    request.files.push(("bench/stopwatch".into(), guests::stopwatch()?));
    request.files.push(("bench/shell.sh".into(), tree::root().join("bench/guests/shell.sh")));
    let profile = tree::target().join("guests/measure.bash_profile");
    build::write_if_changed(&profile, AT_THE_PROMPT.as_bytes())?;
    request.files.push(("root/.bash_profile".into(), profile));
    Ok(make(&request)?.path)
}

/// Makes all measurements of one system.
fn measure(kernel: Kernel, image: &Path) -> Result<Figures> {
    let mut figures = vec![
        ("kernel and servers, as they are loaded, KiB".into(), kibibytes(&system_files(kernel)?)?),
        ("root file system, KiB".into(), kibibytes(&[image.to_path_buf()])?),
    ];
    let (shown, _) = boot(kernel, image, &[], true)?;
    figures.extend(lines(&shown));
    let mut seconds = f64::INFINITY;
    for _ in 0..BOOTS {
        seconds = seconds.min(boot(kernel, image, &[], false)?.1);
    }
    let place = figures.len().min(3);
    figures.insert(
        place,
        ("power-on to the prompt and off again, seconds of the host".into(), (seconds * 10.0).round() / 10.0),
    );
    let (shown, _) = boot(kernel, image, &["/bench/shell.sh".into()], true)?;
    figures.extend(lines(&shown));
    Ok(figures)
}

/// The files that are loaded in addition to the image.
fn system_files(kernel: Kernel) -> Result<Vec<PathBuf>> {
    Ok(match kernel {
        Kernel::Macadamia => build::guest_files().collect(),
        Kernel::Linux => vec![linux::kernel()?.0],
    })
}

fn kibibytes(files: &[PathBuf]) -> Result<f64> {
    let mut bytes = 0;
    for file in files {
        bytes += std::fs::metadata(file).with_context(|| format!("{} is missing", file.display()))?.len();
    }
    Ok((bytes >> 10) as f64)
}

/// Boots a system, with instructions counted if `icount` is set. Returns the terminal's output up
/// to the end of the machine, and the seconds until then.
fn boot(kernel: Kernel, image: &Path, command: &[String], icount: bool) -> Result<(String, f64)> {
    let mut machine = Hardware::plain().machine();
    machine.icount = icount;
    machine.arguments = "exit".into();
    let mut environment = vec![("TERM", "xterm-256color"), ("ROWS", "24"), ("COLUMNS", "80")];
    if kernel == Kernel::Linux {
        // Macadamia has no such mitigations either.
        environment.push(("mitigations", "off"));
    }
    let environment = environment.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
    let (image, command) = (Some(image.to_path_buf()), command.to_vec());
    let start = Start {
        kernel,
        mode: Mode::Exception,
        image,
        command,
        greet: true,
        streams: Default::default(),
        environment,
        machine,
    };
    let begin = Instant::now();
    let shown = start.output("measure")?;
    Ok((shown, begin.elapsed().as_secs_f64()))
}

/// Parses lines of a name, a tabulator and a number. Returns them as measurements with their units.
fn lines(shown: &str) -> Figures {
    let line = |line: &str| {
        let (name, number) = line.trim_end().split_once('\t')?;
        let number: u64 = number.split(' ').next()?.parse().ok()?;
        Some(match name {
            "free at the prompt" => {
                ("memory in use at the prompt, KiB".to_string(), MEMORY.saturating_sub(number) as f64)
            }
            name => (format!("{name}, instructions"), number as f64),
        })
    };
    shown.lines().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_terminal_shows_becomes_figures() {
        let shown = "noise\na thing\t1234567\nfree at the prompt\t523288 kB\nno number\tx\n";
        let figures = lines(shown);
        assert_eq!(figures[0], ("a thing, instructions".to_string(), 1234567.0));
        assert_eq!(figures[1], ("memory in use at the prompt, KiB".to_string(), 1000.0));
        assert_eq!(figures.len(), 2);
    }
}
