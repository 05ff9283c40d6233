//! Everything behind `./mac`: builds, boots, tests and measures Macadamia.
fn main() {}
