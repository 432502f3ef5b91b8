--- script: the script of the page, one text whose hash is in the policy of the page.
--
-- Must never create markup from content: it reads text, and sets classes and attributes.

return [[
"use strict";
(function(){
  var root=document.documentElement,doc=document;
  var get=function(id){return doc.getElementById(id)};
  var main=get("messages"),bar=get("bar"),box=get("find"),count=get("count");
  if(!main||!bar)return;
  bar.hidden=false;
  /* light or dark */
  var dark=window.matchMedia("(prefers-color-scheme: dark)");
  get("theme").addEventListener("click",function(){
    var now=root.dataset.theme||(dark.matches?"dark":"light");
    root.dataset.theme=now==="dark"?"light":"dark";
  });
  /* the outline is open where there is room */
  var outline=get("outline");
  if(outline&&window.innerWidth<992)outline.open=false;
  /* folds */
  var folds=get("folds");
  folds.addEventListener("click",function(){
    var open=folds.getAttribute("aria-pressed")!=="true";
    main.querySelectorAll("details").forEach(function(d){d.open=open});
    folds.setAttribute("aria-pressed",String(open));
    folds.textContent=open?"Fold all":"Unfold all";
  });
  var before=[];
  window.addEventListener("beforeprint",function(){
    before=Array.prototype.filter.call(main.querySelectorAll("details"),
      function(d){return !d.open});
    before.forEach(function(d){d.open=true});
  });
  window.addEventListener("afterprint",function(){before.forEach(function(d){d.open=false})});
  /* only what the model is shown */
  var only=get("only");
  if(only)only.addEventListener("change",function(){
    root.classList.toggle("in-context",only.checked);
  });
  /* a place that is linked to is unfolded */
  function reveal(){
    var at=location.hash&&get(location.hash.slice(1));
    for(var e=at;e&&e!==doc.body;e=e.parentElement)if(e.tagName==="DETAILS")e.open=true;
    if(at&&at.classList.contains("out")&&only&&only.checked)only.click();
    if(at)at.scrollIntoView();
  }
  window.addEventListener("hashchange",reveal);
  /* search */
  var texts=null,hits=[],current=-1,timer=0;
  var can=window.CSS&&CSS.highlights&&window.Highlight;
  function index(){
    texts=Array.prototype.map.call(main.querySelectorAll(".m"),function(m){
      return {m:m,text:m.textContent.toLowerCase()};
    });
  }
  function paint(list,words){
    if(!can)return;
    CSS.highlights.delete("found");
    if(!words)return;
    var marks=[];
    for(var i=0;i<list.length&&marks.length<2000;i++){
      var walk=doc.createTreeWalker(list[i],NodeFilter.SHOW_TEXT);
      for(var n=walk.nextNode();n&&marks.length<2000;n=walk.nextNode()){
        var low=n.data.toLowerCase();
        if(low.length!==n.data.length)continue;
        for(var at=low.indexOf(words);at>=0;at=low.indexOf(words,at+words.length)){
          var r=doc.createRange();r.setStart(n,at);r.setEnd(n,at+words.length);marks.push(r);
        }
      }
    }
    CSS.highlights.set("found",new Highlight(...marks));
  }
  function say(){
    count.textContent=!box.value.trim()?"":hits.length?(current<0?"":(current+1)+" of ")+hits.length
      :"nothing";
    get("next").disabled=get("previous").disabled=!hits.length;
  }
  function search(){
    var words=box.value.trim().toLowerCase();
    if(!texts)index();
    hits=[];current=-1;
    texts.forEach(function(t){
      var hit=words!==""&&t.text.indexOf(words)>=0;
      t.m.classList.toggle("hit",hit);
      if(hit)hits.push(t.m);
    });
    root.classList.toggle("searching",words!=="");
    paint(hits,words);
    say();
  }
  function go(by){
    if(!hits.length)return;
    current=(current+by+hits.length)%hits.length;
    var m=hits[current],words=box.value.trim().toLowerCase();
    m.querySelectorAll("details").forEach(function(d){
      if(d.textContent.toLowerCase().indexOf(words)>=0)d.open=true;
    });
    m.setAttribute("tabindex","-1");
    m.scrollIntoView({block:"center"});
    hits.forEach(function(h){h.removeAttribute("aria-current")});
    m.setAttribute("aria-current","true");
    say();
  }
  box.addEventListener("input",function(){clearTimeout(timer);timer=setTimeout(search,150)});
  box.addEventListener("keydown",function(e){
    if(e.key==="Enter"){e.preventDefault();go(e.shiftKey?-1:1)}
    if(e.key==="Escape"){box.value="";search();box.blur()}
  });
  get("next").addEventListener("click",function(){go(1)});
  get("previous").addEventListener("click",function(){go(-1)});
  /* keys */
  doc.addEventListener("keydown",function(e){
    if(e.ctrlKey||e.metaKey||e.altKey||/^(INPUT|TEXTAREA)$/.test(e.target.tagName))return;
    if(e.key==="/"){e.preventDefault();box.focus()}
    if(e.key==="j"||e.key==="k"){
      var list=main.querySelectorAll(".m.turn"),down=e.key==="j",to=null;
      for(var i=0;i<list.length;i++){
        var top=list[i].getBoundingClientRect().top;
        if(down&&top>90){to=list[i];break}
        if(!down&&top<50)to=list[i];
      }
      if(to)to.scrollIntoView();
    }
  });
  /* where one is, in the outline */
  if(outline&&window.IntersectionObserver){
    var links={},last=null;
    outline.querySelectorAll("a[href^='#']").forEach(function(a){
      links[a.getAttribute("href").slice(1)]=a;
    });
    var seen=new IntersectionObserver(function(list){
      list.forEach(function(one){
        var a=one.isIntersecting&&links[one.target.id];
        if(!a)return;
        if(last)last.removeAttribute("aria-current");
        a.setAttribute("aria-current","true");last=a;
        var top=a.offsetTop-outline.scrollTop;
        if(top<0||top>outline.clientHeight-40)outline.scrollTop=a.offsetTop-outline.clientHeight/2;
      });
    },{rootMargin:"-10% 0px -75% 0px"});
    main.querySelectorAll(".m.turn").forEach(function(m){seen.observe(m)});
  }
  reveal();
})();
]]
