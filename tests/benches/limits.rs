use tinyspec_benches::limits::{LARGE, Limit, Machine, Resource, Words};

#[test]
fn names_say_resource_size_and_threads() {
    let rows = Limit { resource: Resource::Rows(4096), threads: 1 };
    let words = Limit { resource: Resource::Words(Words::Bytes), threads: 1 };
    let limits =
        [Limit::fma(1), words, Limit::exponentials(2), Limit::copy(LARGE, 2), Limit::read(768 * 3072, 16), rows]
            .map(|limit| limit.to_string());
    assert_eq!(
        limits,
        [
            "limit/fma/1t",
            "limit/i8/1t",
            "limit/exp/2t",
            "limit/copy/67MB/2t",
            "limit/read/9MB/16t",
            "limit/rows/13MB/1t"
        ]
    );
}

#[test]
fn a_machine_has_every_resource_for_each_thread_count() {
    let machine = Machine::new();
    let limits = machine.limits();
    let words = [Words::Bytes, Words::Bf16].into_iter().filter(|words| words.are_there()).count();
    assert_eq!(limits.len(), (4 + words) * machine.thread_counts().len());
    assert!(limits.contains(&Limit::fma(1)));
    assert!(machine.rows().is_empty());
}

#[test]
fn a_kept_rate_is_the_limit_of_its_row() {
    let mut machine = Machine::new();
    let limit = Limit::read(LARGE, 1);
    machine.keep(limit, 12.5);
    assert_eq!(machine.rate(limit), 12.5);
    let [row] = machine.rows().try_into().unwrap();
    assert_eq!(
        (row.name.as_str(), row.median, row.limit, row.share),
        ("limit/read/67MB/1t", 12.5, Some(12.5), Some(1.0))
    );
}
