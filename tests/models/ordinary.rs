//! Functions as they are ordinarily written: what is embedded is what they build when they run.

use tinyspec::prelude::*;

/// Rotary positions.
#[function]
fn rope<B, H, T, D>(
    x: &Tensor<f32, B, H, T, { 2 * D }>,
    cos: &Tensor<f32, T, D>,
    sin: &Tensor<f32, T, D>,
) -> Tensor<f32, B, H, T, { 2 * D }> {
    let x1 = x.at((.., .., .., ..D));
    let x2 = x.at((.., .., .., D..));
    Tensor::cat(&[&(&x1 * cos - &x2 * sin), &(&x1 * sin + &x2 * cos)], -1)
}

/// Heads of queries share keys and values.
#[function(where(H % G == 0))]
fn gqa<B, H, G, T, D>(
    q: &Tensor<f32, B, H, T, D>,
    k: &Tensor<f32, B, G, T, D>,
    v: &Tensor<f32, B, G, T, D>,
) -> Tensor<f32, B, H, T, D> {
    let k = k.unsqueeze(2).expand([B, G, H / G, T, D]).reshape([B, H, T, D]);
    let v = v.unsqueeze(2).expand([B, G, H / G, T, D]).reshape([B, H, T, D]);
    let scores = q.matmul(k.transpose(2, 3)) / (D as f32).sqrt();
    scores.softmax(-1).matmul(&v)
}

/// A recurrent layer, step by step.
#[function]
fn gru<B, I, H>(
    xs: &Tensor<f32, 4, B, I>,
    w: &Tensor<f32, I, { 3 * H }>,
    u: &Tensor<f32, H, { 3 * H }>,
) -> Tensor<f32, 4, B, H> {
    let mut h = Tensor::zeros([B, H]);
    let mut outs = vec![];
    for t in 0..4 {
        let x = xs.at(t).matmul(w).chunk(3, -1);
        let g = h.matmul(u).chunk(3, -1);
        let z = (&x[0] + &g[0]).sigmoid();
        let r = (&x[1] + &g[1]).sigmoid();
        let n = (&x[2] + r * &g[2]).tanh();
        h = (1.0 - &z) * n + &z * &h;
        outs.push(h.clone());
    }
    Tensor::stack(&outs.iter().collect::<Vec<_>>(), 0)
}

/// The loss of a variational autoencoder.
#[function]
fn vae_loss<B, D, Z>(
    x: &Tensor<f32, B, D>,
    enc: &Tensor<f32, D, { 2 * Z }>,
    dec: &Tensor<f32, Z, D>,
    noise: &Tensor<f32, B, Z>,
) -> (Tensor<f32>, Tensor<f32, B, D>) {
    let stats = x.matmul(enc);
    let mu = stats.at((.., ..Z));
    let logvar = stats.at((.., Z..));
    let z = &mu + (&logvar * 0.5).exp() * noise;
    let recon = z.matmul(dec).sigmoid();
    let bce = -(x * recon.log() + (1.0 - x) * (1.0 - &recon).log()).sum(.., false);
    let kl = -0.5 * (1.0 + &logvar - mu.square() - logvar.exp()).sum(.., false);
    ((bce + kl) / B as f32, recon)
}

/// Sines and cosines of a time.
#[function]
fn time_embedding<B>(t: &Tensor<f32, B>) -> Tensor<f32, B, 64> {
    let half = 32;
    let freqs = (Tensor::arange(half).cast(DType::F32) * (-(10000f32).ln() / half as f32)).exp();
    let args = t.unsqueeze(1) * freqs.unsqueeze(0);
    Tensor::cat(&[&args.cos(), &args.sin()], 1)
}

/// Pairs among all others.
#[function]
fn clip_loss<B, D>(a: &Tensor<f32, B, D>, b: &Tensor<f32, B, D>, temperature: f32) -> Tensor<f32> {
    let a = a.normalize(2.0, 1, 1e-8);
    let b = b.normalize(2.0, 1, 1e-8);
    let logits = a.matmul(b.transpose(0, 1)) / temperature;
    let labels = Tensor::arange(B);
    (logits.cross_entropy(&labels, "mean", 0.0, -100)
        + logits.transpose(0, 1).cross_entropy(&labels, "mean", 0.0, -100))
        / 2.0
}

/// Losses of what is hard.
#[function]
fn focal<B>(logits: &Tensor<f32, B>, y: &Tensor<f32, B>, gamma: f32, alpha: f32) -> Tensor<f32> {
    let p = logits.sigmoid();
    let ce = logits.binary_crossentropy_logits(y, "none");
    let p_t = &p * y + (1.0 - &p) * (1.0 - y);
    let loss = ce * (1.0 - p_t).pow(gamma);
    let a_t = alpha * y + (1.0 - alpha) * (1.0 - y);
    (a_t * loss).mean(.., false)
}

/// Labels that are nearly certain.
#[function]
fn smooth<B, C>(logits: &Tensor<f32, B, C>, labels: &Tensor<i32, B>, eps: f32) -> Tensor<f32> {
    let logp = logits.log_softmax(-1);
    let onehot = labels.unsqueeze(1).eq(Tensor::arange(C)).cast(DType::F32);
    let target = onehot * (1.0 - eps) + eps / C as f32;
    -(target * logp).sum(-1, false).mean(.., false)
}

/// A step of Adam.
#[function]
fn adam<N>(
    w: &Tensor<f32, N>,
    g: &Tensor<f32, N>,
    m: &Tensor<f32, N>,
    v: &Tensor<f32, N>,
    t: f32,
    lr: f32,
) -> (Tensor<f32, N>, Tensor<f32, N>, Tensor<f32, N>) {
    const B1: f32 = 0.9;
    const B2: f32 = 0.999;
    let m = m * B1 + g * (1.0 - B1);
    let v = v * B2 + g * g * (1.0 - B2);
    let mhat = &m / (1.0 - Tensor::full((), B1).pow(t));
    let vhat = &v / (1.0 - Tensor::full((), B2).pow(t));
    (w - lr * mhat / (vhat.sqrt() + 1e-8), m, v)
}

/// A token among the likeliest.
#[function]
fn top_p<B, V>(logits: &Tensor<f32, B, V>, p: f32, u: &Tensor<f32, B, 1>) -> Tensor<i32, B> {
    let probs = logits.softmax(-1);
    let [sorted, idx] = probs.sort(-1, true);
    let cum = sorted.cumsum(-1);
    let keep = (&cum - &sorted).lt(p);
    let kept = keep.where_(&sorted, 0.0);
    let kept = &kept / kept.sum(-1, true);
    let pick = kept.cumsum(-1).lt(u).cast(DType::I32).sum(-1, true);
    idx.gather(&pick, -1).squeeze(1)
}

/// Means of the nearest.
#[function]
fn kmeans<N, K, D>(x: &Tensor<f32, N, D>, c: &Tensor<f32, K, D>) -> (Tensor<f32, K, D>, Tensor<i32, N>) {
    let d = (x.unsqueeze(1) - c.unsqueeze(0)).pow(2.0).sum(-1, false);
    let a = d.argmin(1);
    let one = a.unsqueeze(1).eq(Tensor::arange(K)).cast(DType::F32);
    let count = one.sum(0, false).maximum(1.0);
    (one.transpose(0, 1).matmul(x) / count.unsqueeze(1), a)
}

/// A layer of a normalising flow.
#[function]
fn coupling<B, D, H>(
    x: &Tensor<f32, B, { 2 * D }>,
    w1: &Tensor<f32, D, H>,
    ws: &Tensor<f32, H, D>,
    wt: &Tensor<f32, H, D>,
) -> (Tensor<f32, B, { 2 * D }>, Tensor<f32, B>) {
    let [a, b] = x.chunk(2, 1);
    let h = a.matmul(w1).relu();
    let s = h.matmul(ws).tanh();
    let t = h.matmul(wt);
    (Tensor::cat(&[&a, &(b * s.exp() + t)], 1), s.sum(1, false))
}

/// A filter for each channel, then across them.
#[function]
fn separable<B, O, H, W>(
    x: &Tensor<f32, B, 8, H, W>,
    dw: &Tensor<f32, 8, 1, 3, 3>,
    pw: &Tensor<f32, O, 8, 1, 1>,
) -> Tensor<f32, B, O, H, W> {
    x.conv2d(dw, None, Conv2d { groups: 8, padding: [1, 1], ..default() }).relu().conv2d(pw, None, default())
}

/// Attention to another sequence, of which a part is padding.
#[function]
fn cross_masked<B, T, S, D>(
    q: &Tensor<f32, B, T, D>,
    kv: &Tensor<f32, B, S, D>,
    mask: &Tensor<bool, B, S>,
) -> Tensor<f32, B, T, D> {
    let scores = q.matmul(kv.transpose(1, 2)) / (D as f32).sqrt();
    mask.unsqueeze(1).where_(&scores, -1e9).softmax(-1).matmul(kv)
}

/// Down, up, and joined.
#[function]
fn unet<B, C>(
    x: &Tensor<f32, B, C, 16, 16>,
    w: &Tensor<f32, C, C, 3, 3>,
    up: &Tensor<f32, C, { 2 * C }, 3, 3>,
    t: &Tensor<f32, B, C>,
) -> Tensor<f32, B, C, 16, 16> {
    let opts = Conv2d { padding: [1, 1], ..default() };
    let h = x.conv2d(w, None, opts).silu() + t.unsqueeze(-1).unsqueeze(-1);
    let d = h.max_pool2d([2, 2], MaxPool2d { stride: Some([2, 2]), ..default() });
    let u = d.interpolate([16, 16], "nearest", false);
    Tensor::cat(&[&u, &h], 1).conv2d(up, None, opts)
}

/// A loop over time that sets a part of its state.
#[function]
fn ctc<B, V>(logp: &Tensor<f32, 6, B, V>, labels: &Tensor<i32, B, 3>) -> Tensor<f32, B> {
    let mut alpha = Tensor::full([B, 3], -1e30);
    alpha.set((.., 0), logp.at(0).gather(labels, 1).at((.., 0)));
    for t in 1..6 {
        let emit = logp.at(t).gather(labels, 1);
        let shifted = Tensor::cat(&[&Tensor::full([B, 1], -1e30), &alpha.narrow(1, 0, 2)], 1);
        alpha = alpha.logaddexp(&shifted) + emit;
    }
    alpha.at((.., -1))
}

/// The best of all continuations.
#[function]
fn beam<B, K, V>(
    scores: &Tensor<f32, B, K>,
    logp: &Tensor<f32, B, K, V>,
) -> (Tensor<f32, B, 4>, Tensor<i32, B, 4>, Tensor<i32, B, 4>) {
    let total = (scores.unsqueeze(2) + logp).reshape([B, K * V]);
    let [best, index] = total.topk(4, 1, true);
    let beams = index.idiv(V as i32, "floor");
    let tokens = index % V;
    (best, beams, tokens)
}

#[model(functions)]
struct Linear<I, O> {
    w: Tensor<f32, I, O>,
    b: Option<Tensor<f32, O>>,
}

#[function]
impl<I, O> Linear<I, O> {
    fn forward<B, T>(&self, x: &Tensor<f32, B, T, I>) -> Tensor<f32, B, T, O> {
        let y = x.matmul(&self.w);
        match &self.b {
            Some(b) => y + b,
            None => y,
        }
    }
}

#[model(functions)]
struct LayerNorm<D> {
    #[model(init = ones)]
    g: Tensor<f32, D>,
    b: Tensor<f32, D>,
}

#[function]
impl<D> LayerNorm<D> {
    fn forward<B, T>(&self, x: &Tensor<f32, B, T, D>) -> Tensor<f32, B, T, D> {
        let mu = x.mean(-1, true);
        let var = (x - &mu).square().mean(-1, true);
        (x - mu) * (var + 1e-5).rsqrt() * &self.g + &self.b
    }
}

#[model(functions)]
struct GptBlock<D, H> {
    ln1: LayerNorm<D>,
    q: Linear<D, D>,
    k: Linear<D, D>,
    v: Linear<D, D>,
    o: Linear<D, D>,
    ln2: LayerNorm<D>,
    up: Linear<D, H>,
    down: Linear<H, D>,
}

#[function]
impl<D, H> GptBlock<D, H> {
    #[function(where(D % 4 == 0))]
    fn attend<B, T>(&self, x: &Tensor<f32, B, T, D>) -> Tensor<f32, B, T, D> {
        let heads = [B, T, 4, D / 4];
        let q = self.q.forward(x).reshape(heads).transpose(1, 2);
        let k = self.k.forward(x).reshape(heads).transpose(1, 2);
        let v = self.v.forward(x).reshape(heads).transpose(1, 2);
        let y = q.sdpa(&k, &v, true);
        self.o.forward(&y.transpose(1, 2).reshape([B, T, D]))
    }
    #[function(where(D % 4 == 0))]
    fn forward<B, T>(&self, x: &Tensor<f32, B, T, D>) -> Tensor<f32, B, T, D> {
        let x = x + self.attend(&self.ln1.forward(x));
        let h = self.up.forward(&self.ln2.forward(&x)).gelu();
        x + self.down.forward(&h)
    }
}

#[model(functions)]
struct Gpt {
    tokens: Tensor<f32, 65, 32>,
    places: Tensor<f32, 16, 32>,
    blocks: [GptBlock<32, 128>; 2],
    norm: LayerNorm<32>,
}

#[function]
impl Gpt {
    fn logits<B, T>(&self, ids: &Tensor<i32, B, T>) -> Tensor<f32, B, T, 65> {
        let mut x = self.tokens.index_select(0, ids.flatten(0, 1)).reshape([B, T, 32]) + self.places.at(..T);
        for block in &self.blocks {
            x = block.forward(&x);
        }
        self.norm.forward(&x).matmul(self.tokens.transpose(0, 1))
    }
    #[function(grad)]
    fn loss<B, T>(&self, ids: &Tensor<i32, B, T>, targets: &Tensor<i32, B, T>) -> Tensor<f32> {
        self.logits(ids).reshape([B * T, 65]).cross_entropy(targets.reshape([-1]), "mean", 0.0, -100)
    }
}

#[model(functions)]
struct Ema<D> {
    online: Linear<D, D>,
    #[model(buffer)]
    target: Linear<D, D>,
}

#[function]
impl<D> Ema<D> {
    fn update(&mut self, decay: f32) -> Tensor<f32> {
        self.target.w = &self.target.w * decay + &self.online.w * (1.0 - decay);
        if let (Some(t), Some(o)) = (&mut self.target.b, &self.online.b) {
            *t = &*t * decay + o * (1.0 - decay);
        }
        (&self.target.w - &self.online.w).abs().max(.., false)
    }
}

#[model(functions)]
struct Lstm<I, H> {
    wx: Tensor<f32, I, { 4 * H }>,
    wh: Tensor<f32, H, { 4 * H }>,
    b: Tensor<f32, { 4 * H }>,
}

#[function]
impl<I, H> Lstm<I, H> {
    fn cell<B>(
        &self,
        x: &Tensor<f32, B, I>,
        h: &Tensor<f32, B, H>,
        c: &Tensor<f32, B, H>,
    ) -> (Tensor<f32, B, H>, Tensor<f32, B, H>) {
        let gates = x.matmul(&self.wx) + h.matmul(&self.wh) + &self.b;
        let [i, f, g, o] = gates.chunk(4, 1);
        let c = f.sigmoid() * c + i.sigmoid() * g.tanh();
        let h = o.sigmoid() * c.tanh();
        (h, c)
    }
    fn run<B>(&self, xs: &Tensor<f32, 5, B, I>) -> Tensor<f32, B, H> {
        let mut h = Tensor::zeros([B, H]);
        let mut c = Tensor::zeros([B, H]);
        for t in 0..5 {
            (h, c) = self.cell(&xs.at(t), &h, &c);
        }
        h
    }
}

#[test]
fn graphs_are_those_of_the_run_time() -> Result<()> {
    let _alone = crate::alone();
    for function in [
        rope::FUNCTION,
        gqa::FUNCTION,
        gru::FUNCTION,
        vae_loss::FUNCTION,
        time_embedding::FUNCTION,
        clip_loss::FUNCTION,
        focal::FUNCTION,
        smooth::FUNCTION,
        adam::FUNCTION,
        top_p::FUNCTION,
        kmeans::FUNCTION,
        coupling::FUNCTION,
        separable::FUNCTION,
        cross_masked::FUNCTION,
        unet::FUNCTION,
        ctc::FUNCTION,
        beam::FUNCTION,
        GptBlock::<1, 1>::FORWARD,
        Gpt::LOSS,
        Ema::<1>::UPDATE,
        Lstm::<1, 1>::RUN,
    ] {
        assert_eq!(function.get()?.body().hash(), function.retrace()?.body().hash(), "{}", function.name());
    }
    Ok(())
}

#[test]
fn a_small_gpt_learns() -> Result<()> {
    let _alone = crate::alone();
    let (mut gpt, mut optimizer) = (Gpt::init(), Adam::new(0.01));
    let ids: Vec<i32> = (0..2 * 9).map(|i| i * 7 % 13).collect();
    let ids = Tensor::from_slice(&ids, [2, 9]);
    let (x, y) = (ids.at((.., ..8)), ids.at((.., 1..)));
    let mut losses = vec![];
    for _ in 0..8 {
        let loss = gpt.loss(&x, &y);
        gpt.train_step(&loss, &mut optimizer)?;
        losses.push(loss.item::<f32>()?);
    }
    assert!(losses[7] < 0.7 * losses[0], "{losses:?}");
    Ok(())
}
