//! The files of /sys that describe the hardware clock (Linux' Documentation/ABI, sysfs-class-rtc).

use super::Content;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use unix::Environment;
use unix::devfs::HARDWARE_CLOCK;
use unix::hardware_clock::CalendarTime;

/// The nodes below `devices/platform/rtc_cmos` and `class/rtc`, as path and content.
pub(super) fn nodes(environment: &Arc<dyn Environment>) -> Vec<(String, Content)> {
    if environment.hardware_clock().is_none() {
        return Vec::new();
    }
    let directory = "devices/platform/rtc_cmos/rtc/rtc0";
    // While the clock shows no valid time, the files are empty; on Linux a read fails.
    let live = |show: fn(&CalendarTime) -> String| {
        let environment = environment.clone();
        let read = move || environment.hardware_clock().and_then(|clock| clock.read().ok());
        Content::Live(Box::new(move || read().map(|time| show(&time)).unwrap_or_default()))
    };
    let (major, minor) = (HARDWARE_CLOCK.major, HARDWARE_CLOCK.minor);
    let files = [
        ("date", live(|time| format!("{:04}-{:02}-{:02}\n", time.year, time.month, time.day))),
        ("time", live(|time| format!("{:02}:{:02}:{:02}\n", time.hour, time.minute, time.second))),
        ("since_epoch", live(|time| format!("{}\n", time.seconds()))),
        ("name", Content::File("rtc_cmos rtc_cmos\n".into())),
        ("hctosys", Content::File("1\n".into())),
        ("dev", Content::File(format!("{major}:{minor}\n"))),
        ("uevent", Content::File(format!("MAJOR={major}\nMINOR={minor}\nDEVNAME=rtc0\n"))),
    ];
    let link = (String::from("class/rtc/rtc0"), Content::Link(format!("../../{directory}")));
    let files = files.into_iter().map(|(name, content)| (format!("{directory}/{name}"), content));
    files.chain([link]).collect()
}
