use tinyspec_benches::limits::{Limit, Machine};

#[test]
fn names_say_resource_and_threads() {
    let names = [Limit::fma(1), Limit::copy(2), Limit::read(16)].map(|limit| limit.to_string());
    assert_eq!(names, ["limit/fma/1t", "limit/copy/2t", "limit/read/16t"]);
}

#[test]
fn a_machine_has_every_resource_for_each_thread_count() {
    let machine = Machine::new();
    let limits = machine.limits();
    assert_eq!(limits.len(), 3 * machine.thread_counts().len());
    assert!(limits.contains(&Limit::fma(1)));
    assert!(machine.rows().is_empty());
}

#[test]
fn a_kept_rate_is_the_limit_of_its_row() {
    let mut machine = Machine::new();
    machine.keep(Limit::read(1), 12.5);
    assert_eq!(machine.rate(Limit::read(1)), 12.5);
    let [row] = machine.rows().try_into().unwrap();
    assert_eq!((row.name.as_str(), row.median, row.limit, row.share), ("limit/read/1t", 12.5, Some(12.5), Some(1.0)));
}
