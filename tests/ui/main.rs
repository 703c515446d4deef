//! Messages of the macros: every case is refused with the text beside it.
//!
//! `TRYBUILD=overwrite cargo test -p tinyspec-tests --test ui` writes the messages anew; read each before it is committed.

mod index;

#[test]
fn messages() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("ui/*/*.rs");
}
