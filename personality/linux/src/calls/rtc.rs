//! The requests of ioctl(2) to the hardware clock (rtc(4)). The clock has no interrupts, so there
//! are neither alarms nor periodic ones: `EINVAL`, as for such clocks on Linux.

use crate::call::{Call, Done};
use crate::layout::time::{calendar_time, to_calendar_time};
use mach::Machine;
use unix::hardware_clock::ClockFile;
use unix::{Error, Privilege};

const RTC_AIE_ON: u32 = 0x7001;
const RTC_AIE_OFF: u32 = 0x7002;
const RTC_UIE_ON: u32 = 0x7003;
const RTC_UIE_OFF: u32 = 0x7004;
const RTC_PIE_ON: u32 = 0x7005;
const RTC_PIE_OFF: u32 = 0x7006;
const RTC_ALM_READ: u32 = 0x8024_7008;
const RTC_ALM_SET: u32 = 0x4024_7007;
const RTC_RD_TIME: u32 = 0x8024_7009;
const RTC_SET_TIME: u32 = 0x4024_700a;
const RTC_IRQP_READ: u32 = 0x8008_700b;
const RTC_IRQP_SET: u32 = 0x4008_700c;
const RTC_WKALM_SET: u32 = 0x4028_700f;
const RTC_WKALM_RD: u32 = 0x8028_7010;

/// Carries out a request to the hardware clock.
pub(super) async fn request<M: Machine>(call: &Call<'_, M>, file: &ClockFile, request: u32) -> Done {
    match request {
        RTC_RD_TIME => call.write(call.arg(2), &to_calendar_time(&file.clock()?.read()?)).await?,
        RTC_SET_TIME => {
            if !call.has(Privilege::Clock) {
                return Err(Error::EACCES.into());
            }
            let time = calendar_time(&call.read(call.arg(2)).await?)?;
            file.clock()?.set(&time)?;
        }
        RTC_AIE_ON | RTC_AIE_OFF | RTC_UIE_ON | RTC_UIE_OFF | RTC_PIE_ON | RTC_PIE_OFF | RTC_ALM_READ
        | RTC_ALM_SET | RTC_IRQP_READ | RTC_IRQP_SET | RTC_WKALM_SET | RTC_WKALM_RD => {
            return Err(Error::EINVAL.into());
        }
        _ => return Err(Error::ENOTTY.into()),
    }
    Ok(0)
}
