const HEADLINES = { plain: "A good lamp.", bold: "THE lamp!", playful: "Let there be light." };

/** Show the headline that the bandit chooses, and reward it if the visitor buys. */
export async function openShop(bandit, page) {
  const headline = page.getElementById("headline");
  const button = page.getElementById("buy");
  let decision;
  try {
    decision = await bandit.decide();
  } catch {
    // Without a decision the page stays as it is, and there is nothing to reward.
    return;
  }
  headline.textContent = HEADLINES[decision.action];
  button.addEventListener("click", async () => {
    const receipt = await bandit.reward(decision.id, 1);
    button.textContent = `Sold (${receipt.status})`;
  });
}
