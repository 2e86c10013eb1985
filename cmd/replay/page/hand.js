// A policy that is written in the page.
const handName = (text) => "mine";
const handing = () => {};
